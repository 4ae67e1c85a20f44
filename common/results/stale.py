#!/usr/bin/env python3
"""Which records are of other sources than today's?

    stale.py            prints a table: record, date, commit, and which sources have changed since that commit
    stale.py --strict   nothing but the records that the suite does not let grow stale; exit code 1 if one is

A record says in its head which record it is ("record") and the fingerprint of the sources that decided it. It is stale if
today's sources have another one (fingerprint.py), or if it has none. What has changed is known where the history holds the
record's commit. `common/results/record.py` records what is stale.
"""
import argparse
import functools
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from fingerprint import Commit, Missing, WorkingTree, changed
from records import BY_NAME, RECORDS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/results"
# The suite fails when one of these is stale. Switch one on once it was recorded from today's sources.
STRICT = {
    "climb": True,
    "levels": True,
    "any_matrix": True,
    "ablate_02": True,
    "ablate_05": True,
    "ablate_06": True,
    "sanitizers": False,  # of the kernels before 04.1 and the storers of 05 and 06 were changed on 2026-11-28
}
MOST_NAMED = 3  # files that a row of the table names


HERE = WorkingTree()


@functools.cache
def todays_fingerprint(name):
    """Of the sources as they lie here; None for a record that is not in the list."""
    return BY_NAME[name].fingerprint(HERE, RESULTS) if name in BY_NAME else None


def head_of(document):
    """Where a record says what it is: its top, and of a timeline the metadata."""
    return document["metadata"] if "traceEvents" in document else document


def is_stale(head):
    """Of a file that is none of the records, nothing is known."""
    return "record" in head and head.get("fingerprint") != todays_fingerprint(head["record"])


def dated(head):
    """The date for the line below a table: "2026-11-25", or "2026-11-21, of an earlier kernel"."""
    return head["date"] + (", of an earlier kernel" if is_stale(head) else "")


def where(results, runs=None):
    """For the line below a table of these runs, of all if None: on which GPU, when and of which sources, and whether each result was
    compared with the right one."""
    verified = [bool(run.get("verified")) for run in (results["runs"] if runs is None else runs)]
    doubt = "" if all(verified) else "; not all results are verified" if any(verified) else "; no result is verified"
    return f"{results['gpu']}, {dated(results)}, commit `{results['commit']}`{doubt}"


@dataclass
class State:
    """A record, its newest file and what that says of itself; both None if it was never recorded."""
    record: object
    path: Path = None
    head: dict = None

    @property
    def stale(self):
        return self.head is None or is_stale({**self.head, "record": self.record.name})


def states(results=RESULTS):
    for record in RECORDS:
        path = record.newest(results)
        yield State(record, path, head_of(json.loads(path.read_text(encoding="utf-8")))) if path else State(record)


@functools.cache
def tree_of(commit):
    return Commit(commit)


def what_changed(state):
    """In words, from the history."""
    if state.head is None:
        return "never recorded"
    try:
        names = changed(tree_of(state.head["commit"]), HERE, state.record.roots, state.record.not_run)
    except Missing as missing:
        return f"{missing} is not in the history" if str(missing).startswith("commit") else f"{missing} was elsewhere"
    if not names:
        return "its inputs" if state.record.inputs else "no source; the record has no fingerprint"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def broken_promises(results=RESULTS):
    """One line for each record that is stale and may not be."""
    return [f"{state.record.name}: {state.path.relative_to(results) if state.path else 'no file'} is of an earlier kernel; "
            f"record it: common/results/record.py BUILD {state.record.name}"
            for state in states(results) if STRICT.get(state.record.name) and state.stale]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true", help="only the records that may not be stale")
    arguments = parser.parse_args()
    if arguments.strict:
        lines = broken_promises()
        print("\n".join(lines) if lines else "no record is stale that may not be")
        return 1 if lines else 0
    all_states = list(states())
    rows = [(state.record.name, state.head["date"] if state.head else "", state.head["commit"] if state.head else "",
             what_changed(state)) for state in all_states if state.stale]
    widths = [max(map(len, column)) for column in list(zip(*rows))[:3]] if rows else []
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]))
    print(f"{len(rows)} of {len(all_states)} records are stale")
    return 0


if __name__ == "__main__":
    sys.exit(main())
