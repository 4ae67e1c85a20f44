#!/usr/bin/env python3
"""Records what is stale, in the order of worth: the result files that the pages are generated from.

    record.py [BUILD [RESULTS]] [NAME...]      (default: build docs/results, and all that is stale)

NAME is a record, or a pattern: 'timeline_*', 'ablate_*', sanitizers. Without names, those are left out that are only recorded
when they are asked for (records.py): builds for other GPUs, and what sources are fitted to. What is recorded from today's sources is skipped, so that
the same command goes on where it was stopped: a file takes its place, and that of its predecessor, when it is complete. Until
then it, and what the programs print, are in BUILD/records.

    --list        print what would be recorded and how long it takes, and record nothing
    --all         record also what is not stale
    --minutes N   begin no record that would end later than N minutes from now
    --adopt DIR   record nothing: take what another machine recorded in the folder DIR, in the place of its predecessors
    --cpu         the records of the CPU device, of a build for it, instead of those of a GPU

Needs a build for the GPU that is here, which is brought up to date first (`model` is made anywhere). The sources that decide a record must be committed, because
a record names its commit; where git is missing, the variable LADDER_COMMIT names it. Afterwards common/results/page_tables.py
brings the pages up to date. Exit codes: 0 all was recorded; 1 a record failed, or one is left; 2 bad input, one line.
"""
import argparse
import datetime
import fnmatch
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from climb_table import BadInput
from fingerprint import git, sources
from record_files import Part, each, shared
from record_files import text_of as text_of_shared
from records import BY_NAME, RECORDS
from script import json_rows, write_whole
from stale import HERE, RESULTS, ROOT, head_of, is_stale, todays_fingerprint

BUILD_LIMIT_S = 1800
NO_LIMIT_S = 24 * 3600


# --- What there is to do -----------------------------------------------------------------------------------------------

def newest_head(record, folders):
    """What the newest file of a record says of itself, of one that is not stale if there is one; None if it was never
    recorded."""
    heads = [head_of(json.loads(path.read_text(encoding="utf-8")))
             for folder in folders if (path := record.newest(folder))]
    return min(heads, key=lambda head: is_stale({**head, "record": record.name}), default=None)


def is_recorded(record, folders):
    head = newest_head(record, folders)
    return head is not None and head.get("fingerprint") == todays_fingerprint(record.name)


def seconds_of(record, folders):
    """How long it took the last time, else what the list says."""
    return (newest_head(record, folders) or {}).get("seconds", record.seconds)


def chosen(arguments, gpus):
    """The records that were asked for, and those that need more GPUs than there are. @throws BadInput"""
    device = "cpu" if arguments.cpu else "gpu"
    for name in arguments.names:
        if not any(fnmatch.fnmatchcase(record.name, name) and record.device == device for record in RECORDS):
            raise BadInput(f"{name}: no record of this name of the {'CPU device' if arguments.cpu else 'GPU'}; --list names them")
    asked = [record for record in RECORDS if record.device == device and
             (not arguments.names or any(fnmatch.fnmatchcase(record.name, name) for name in arguments.names))]
    folders = (arguments.results, RESULTS)
    todo, names = [], set()
    for record in asked:  # the inputs of a record come before it
        again = arguments.all or names & set(record.inputs) or not is_recorded(record, folders)
        if again and (arguments.names or not record.only_by_name):
            todo.append(record)
            names.add(record.name)
    # What is made from other records needs all of them in one folder.
    split = arguments.results.resolve() != RESULTS.resolve()
    reasons = {record.name: f"needs {record.gpus} GPUs" for record in todo if record.gpus > gpus}
    reasons.update({record.name: f"is made from other records: record it in {RESULTS}"
                    for record in todo if record.inputs and split})
    return [record for record in todo if record.name not in reasons], reasons


def commit_of(todo):
    """The commit that the records will name. @throws BadInput if sources that decide one of them are not committed"""
    commit = os.environ.get("LADDER_COMMIT") or git(ROOT, "rev-parse", "--short=12", "HEAD")
    if not commit:
        raise BadInput("git does not know the commit of these sources: name it with LADDER_COMMIT")
    status = git(ROOT, "status", "--porcelain", "-uall") or ""
    changed = {line[3:].rpartition(" -> ")[2] for line in status.splitlines()}
    for record in todo:
        if uncommitted := sorted(changed & sources(HERE, record.roots, record.not_run).keys()):
            raise BadInput(f"{uncommitted[0]}: has changes that are not committed, and decides the record {record.name}")
    return commit.strip()


def gpus_here():
    """Their names. None where there is no GPU, or no nvidia-smi."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True,
                              check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [line for line in said.splitlines() if line]


# --- Recording ---------------------------------------------------------------------------------------------------------

def longest(estimate_s):
    """How long a command may take that ought to take so long."""
    return 60 + 4 * estimate_s


class Failed(Exception):
    """Why a record was not made, in one line."""


def run(command, log, limit_s, commit):
    """Runs a command in the root of the repository. @throws Failed"""
    environment = {**os.environ, "LADDER_COMMIT": commit,
                   "LADDER_TUNED": "no"}  # what lesson 06 chooses by itself, not what `ladder tune` remembers here
    with log.open("a", encoding="utf-8") as output:
        print(f"$ {' '.join(command)}", file=output, flush=True)
        try:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            raise Failed(f"{command[0]}: {error.strerror}") from None
        try:
            status = process.wait(limit_s)
        except BaseException as error:  # too late, or Ctrl-C
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"{command[0]} was not done after {limit_s:.0f} s; see {log}") from None
            raise
    if status:
        raise Failed(f"{command[0]} ended with {status}; see {log}")


def filled_in(words, places):
    for name, value in places.items():
        words = [word.replace(f"{{{name}}}", str(value)) for word in words]
    return words


def file_of(record, results, gpu):
    """Where it belongs. What is made from other records has the date and GPU of the first of them."""
    if record.inputs:
        first = BY_NAME[record.inputs[0]].newest(results)
        if first is None:
            raise Failed(f"needs the record {record.inputs[0]}")
        return results / record.file.replace("{date}-{gpu}", first.stem)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return results / record.file.replace("{date}", today).replace("{gpu}", gpu)


def with_head(document, **facts):
    """The facts in the record's head, before its rows."""
    if "traceEvents" in document:
        return {**document, "metadata": {**document["metadata"], **facts}}
    first = {key: value for key, value in document.items() if key in ("date", "commit")}
    return {**first, **facts, **{key: value for key, value in document.items() if key not in (*first, *facts)}}


def text_of(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n" if "traceEvents" in document \
        else json_rows(document)


def put_in_place(record, document, path, results):
    """In the place of its predecessors."""
    before = record.predecessors(results, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not record.is_shared:
        write_whole(path, text_of(document))
        for old in before:
            old.unlink()
        return
    for file in {path, *(part.path for part in before)}:
        parts = [part for part in (shared(file) if file.exists() else ()) if part.document["record"] != record.name]
        parts += [Part(file, document)] * (file == path)
        if parts:
            write_whole(file, text_of_shared(parts))
        else:
            file.unlink()


def adopt(folder, results):
    """Copies the newest of each record from one folder of results to another, and deletes its predecessors there. What is of older
    sources than the record that is there stays out: a file that records share holds those that were not recorded anew, too."""
    found = {}
    for source in each(folder):
        document = json.loads(source.read_text(encoding="utf-8"))
        head = head_of(document)
        if "record" in head and head["date"] >= found.get(head["record"], (head["date"],))[0]:
            found[head["record"]] = head["date"], source, document
    for name, (_, source, document) in found.items():
        if name not in BY_NAME:
            continue
        record = BY_NAME[name]
        if is_stale(head_of(document)) and is_recorded(record, (results,)):
            print(f"left out: {name} of other sources than today's, which are recorded")
            continue
        path = results / (record.file.replace("{gpu}", short_name(head_of(document).get("gpu") or document["device"])) if record.is_shared else source.relative_to(folder))
        put_in_place(record, document, path, results)
        print(f"{name}: {path}")
    return len(found)


def continues(partial, commit):
    """Was this part of a record, which a run before this one left, made with the same commit?"""
    try:
        return json.loads(partial.read_text(encoding="utf-8"))["commit"] == commit
    except (OSError, ValueError, KeyError):
        return False


def record_one(record, arguments, gpu, commit, end, estimate_s):
    """`end`: of time.monotonic(). @throws Failed"""
    folder = arguments.build.resolve() / "records"
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    log, partial = folder / f"{record.name}.log", folder / f"{record.name}.json"
    log.unlink(missing_ok=True)
    path = file_of(record, arguments.results, gpu)
    if not continues(partial, commit):
        partial.unlink(missing_ok=True)
    places = {"programs": arguments.build.resolve() / "bin", "build": arguments.build.resolve(),
              "debug": f"{arguments.build.resolve()}-debug", "results": arguments.results.resolve(), "raw": raw,
              "out": partial, "commit": commit}
    fingerprint = record.fingerprint(HERE, arguments.results)
    begin = time.monotonic()
    for words in record.commands:
        places["left"] = max(0, int(end - time.monotonic()))
        built = words[0] == "cmake"  # not part of the recording
        run(filled_in(words, places), log, BUILD_LIMIT_S if built else longest(estimate_s), commit)
        if built:
            begin = time.monotonic()
    seconds = time.monotonic() - begin
    if not partial.exists():
        raise Failed(f"wrote no file; see {log}")
    document = json.loads(partial.read_text(encoding="utf-8"))
    put_in_place(record, with_head(document, record=record.name, fingerprint=fingerprint, seconds=round(seconds)), path, arguments.results)
    partial.unlink()
    return seconds


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="BUILD, RESULTS, NAME...")
    for name in ("--list", "--all", "--cpu"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--minutes", type=float, metavar="N")
    parser.add_argument("--adopt", type=Path, metavar="DIR")
    arguments = parser.parse_intermixed_args()
    names = [word for word in arguments.words if any(fnmatch.fnmatchcase(record.name, word) for record in RECORDS)]
    places = [word for word in arguments.words if word not in names]
    if len(places) > 2:
        raise BadInput(f"{places[2]}: no record of this name; --list names them")
    for place in places[:1]:
        if not Path(place).is_dir():
            raise BadInput(f"{place}: neither a build folder nor a record; --list names the records")
    arguments.names = names
    arguments.build = Path(places[0] if places else ROOT / ("build-cpu" if arguments.cpu else "build"))
    arguments.results = Path(places[1]) if len(places) > 1 else RESULTS
    return arguments


def short_name(gpu):
    """Of "NVIDIA H100 80GB HBM3" h100, of "NVIDIA GeForce RTX 4090" 4090: the first word with a digit."""
    words = gpu.replace("-", " ").lower().split()
    return next((word for word in words if any(map(str.isdigit, word))), words[-1])


def in_minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def end_commands_when_terminated():
    """A signal that ends this program ends what it runs, too: else that disturbs what is recorded next."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def main():
    arguments = parse_arguments()
    if arguments.adopt:
        if not adopt(arguments.adopt, arguments.results):
            raise BadInput(f"--adopt {arguments.adopt}: holds no record")
        return 0
    gpus = gpus_here()
    todo, left_out = chosen(arguments, max(1, len(gpus)))
    estimates = {record.name: seconds_of(record, (arguments.results, RESULTS)) for record in todo}
    if arguments.list:
        for record in todo:
            print(f"{record.name:45} {estimates[record.name]:5.0f} s")
        print(f"{len(todo)} records, {in_minutes(sum(estimates.values()))}; builds come on top")
    for name, reason in left_out.items():
        print(f"left out: {name} {reason}")
    if arguments.list or not todo:
        if not todo:
            print("nothing is stale")
        return 0
    if not arguments.cpu and not gpus and not all(record.inputs for record in todo):
        raise BadInput("there is no GPU: nvidia-smi names none")
    gpu = short_name(gpus[0]) if gpus else ""
    commit = commit_of(todo)
    end = time.monotonic() + (60 * arguments.minutes if arguments.minutes is not None else NO_LIMIT_S)
    if (arguments.build / "CMakeCache.txt").exists():
        (arguments.build / "records").mkdir(exist_ok=True)
        run(["cmake", "--build", str(arguments.build.resolve())], arguments.build / "records/build.log", BUILD_LIMIT_S, commit)

    failed = []
    for i, record in enumerate(todo):
        estimate = estimates[record.name]
        to_come = sum(estimates[later.name] for later in todo[i:])
        if time.monotonic() + estimate > end:
            print(f"left: {record.name}, which takes {in_minutes(estimate)}", flush=True)
            failed.append(record.name)
            continue
        print(f"{i + 1} of {len(todo)}: {record.name}, about {in_minutes(estimate)}; all that is left {in_minutes(to_come)}",
              flush=True)
        try:
            seconds = record_one(record, arguments, gpu, commit, end, estimate)
            print(f"    took {seconds:.0f} s", flush=True)
        except Failed as failure:
            print(f"    failed: {failure}", flush=True)
            failed.append(record.name)
    if failed:
        print(f"not recorded: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    end_commands_when_terminated()
    try:
        sys.exit(main())
    except (BadInput, Failed) as error:
        print(f"record.py: error: {error}", file=sys.stderr)
        sys.exit(2)
