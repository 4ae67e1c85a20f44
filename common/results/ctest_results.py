#!/usr/bin/env python3
"""Makes a result file of what ctest wrote of a GPU: a row for each test.

    ctest_results.py tests JUNIT HEADER OUTPUT         of all tests
    ctest_results.py sanitizers JUNIT HEADER OUTPUT    of the tests under compute-sanitizer

JUNIT is what `ctest --output-junit JUNIT --test-output-size-passed 100000` wrote, with `--preset sanitize` for those; HEADER is a
result file of a program of the same build, which says date, commit, GPU, driver and toolkit. Exit code 1: a test failed, or none
passed; the file is written all the same. Exit code 2: bad input, one line.

A page asks for tables of the newest records, of the tests under compute-sanitizer, and of how the tests ended on a GPU:

    <!-- sanitizers: -->
    <!-- tests: tests_80-virtual -->    the word names the record
    <!-- end -->
"""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from climb_table import BadInput, read_results
from page_requests import markdown
from record_files import newest
from script import end_with, json_rows, write_whole
from stale import dated

OUTCOMES = {"run": "passed", "fail": "failed", "notrun": "skipped"}
# <test>:<tool>:<the place that the tool names> of the kernels that are right: the list of Sanitize.cmake.
ALARM = re.compile(r'^ +"(\w+):(\w+):(.*)"', re.MULTILINE)
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)\b(?! were not printed)")
OTHER_CODE = re.compile(r"needs code for sm_\w+(?: or later)?")  # a program's, which goes on to say what this build is for
REASON = re.compile(r"SKIPPED:\s+explicitly with messages?:\s+(\S.*)")  # Catch2's
LAST_LINE = re.compile(r"(\S.*)\s*\Z")


def reason_of(case):
    """Why a test was skipped, as it says itself."""
    said = case.findtext("system-out") or ""
    if found := OTHER_CODE.search(said):
        return found[0]
    found = REASON.search(said) or LAST_LINE.search(said)
    return found[1].strip() if found else "it does not say why"


def tested(case):
    row = {"name": case.get("name"), "status": OUTCOMES.get(case.get("status"), "failed"),
           "seconds": round(float(case.get("time")), 1)}
    return {**row, "reason": reason_of(case)} if row["status"] == "skipped" else row


def false_alarms():
    """{(program, tool): the place}"""
    text = (Path(__file__).resolve().parents[1] / "cmake/Sanitize.cmake").read_text(encoding="utf-8")
    return {(program, tool): re.compile(place, re.DOTALL) for program, tool, place in ALARM.findall(text)}


def counts_anew(program, tool, said, errors):
    """Does a false alarm differ from the record only in the number of its errors? Then this is the new number."""
    place = false_alarms().get((program, tool))
    tests_failed = "FAILED:" in said and tool != "synccheck"  # which stops the kernel
    return bool(place and errors and place.search(said) and not tests_failed)


def sanitized(case):
    program, tool = case.get("name").rsplit(": ", 1)
    said = case.findtext("system-out") or ""
    counts = [int(count) for count in SUMMARY.findall(said)]
    errors = max(counts) if counts else None
    outcome = OUTCOMES.get(case.get("status"), "failed")
    if outcome == "failed" and counts_anew(program, tool, said, errors):
        print(f"{program}: {tool}: {errors} errors are not the number of the last record")
        outcome = "passed"
    return {"program": program, "tool": tool, "outcome": outcome, "errors": errors,
            "time_s": round(float(case.get("time")), 1)}


# How a row is read of a test's element, by what rows are in order, and what a row calls the outcome.
KINDS = {"tests": (tested, lambda test: test["name"], "status"),
         "sanitizers": (sanitized, lambda test: (test["program"], test["tool"]), "outcome")}


def collect(kind, junit, header):
    """The head of a result file, and a row for each test of ctest's file."""
    read, key, _ = KINDS[kind]
    try:
        cases = ElementTree.parse(junit).getroot().iter("testcase")
        tests = sorted((read(case) for case in cases), key=key)
    except (OSError, ElementTree.ParseError, ValueError) as error:
        raise BadInput(f"{junit}: {error}") from None
    if not tests:
        raise BadInput(f"{junit}: no tests")
    results = read_results(header)
    return {**{key: results[key] for key in ("date", "commit", "gpu", "driver", "toolkit")}, "tests": tests}


def cell(test):
    """How many errors the tool counted; `always` where it complains of kernels that are right."""
    if test is None or test["outcome"] == "skipped":
        return ""
    if test["outcome"] == "failed":
        return "**failed**"
    if test["errors"] is None:  # of a run that had to report errors, and whose end was cut off
        return "always"
    return f"always: {test['errors']:,}" if test["errors"] else "0"


def sanitizer_table(line, results_folder):
    """A row for each test program, a column for each tool."""
    path = newest(results_folder, "tests/sanitizers")
    if path is None:
        raise BadInput(f"{line}: no such record in {results_folder}")
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        tests = {(test["program"], test["tool"]): test for test in results["tests"]}
        origin = f"{results['gpu']}, {results['toolkit']}, {dated(results)}, commit `{results['commit']}`"
        total = sum(test["time_s"] for test in results["tests"])
        outcomes = [test["outcome"] for test in results["tests"]]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no result file: {error!r}") from error
    tools = [tool for tool in ("memcheck", "racecheck", "synccheck", "initcheck") if any(tool == t for _, t in tests)]
    rows = [[f"`{program}`", *(cell(tests.get((program, tool))) for tool in tools)]
            for program in sorted({program for program, _ in tests})]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped"))
    return markdown(["errors that it counted", *tools], rows) + ["", f"{counts}; {total:.0f} s of one GPU. {origin}."]


def counted(number, word):
    return f"{number or 'none'} {word}"


def gpu_test_table(line, words, results_folder):
    """A paragraph: how many passed, and which failed; folded, why others were skipped, the most frequent reason first."""
    if len(words) != 1:
        raise BadInput(f"{line}: needs the name of a record")
    path = newest(results_folder, f"tests/{words[0]}")
    if path is None:
        return ["How the tests ended was not recorded yet."]
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        by_status = Counter(test["status"] for test in results["tests"])
        failed = [test["name"] for test in results["tests"] if test["status"] == "failed"]
        reasons = Counter(test["reason"] for test in results["tests"] if test["status"] == "skipped")
        origin = f"{results['gpu']}, {results['toolkit']}, {dated(results)}, commit `{results['commit']}`."
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no result file: {error!r}") from error
    names = ": " + "; ".join(f"`{name}`" for name in failed) if failed else ""
    why = ["", "<details><summary>Why tests were skipped</summary>", "", "| tests | reason |", "|--:|---|",
           *(f"| {count} | {reason} |" for reason, count in reasons.most_common()), "", "</details>"] if reasons else []
    return [f"Of {len(results['tests'])} tests {by_status['passed']} passed, {counted(by_status['failed'], 'failed')}{names}, and "
            f"{counted(by_status['skipped'], 'were skipped')}. {origin}", *why]


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in KINDS:
        raise BadInput(f"needs {' or '.join(KINDS)}, the file of ctest, a result file and the file to write")
    results = collect(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    output = Path(sys.argv[4])
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json_rows(results))
    outcomes = [test[KINDS[sys.argv[1]][2]] for test in results["tests"]]
    return 0 if "failed" not in outcomes and "passed" in outcomes else 1


if __name__ == "__main__":
    end_with(main, BadInput)
