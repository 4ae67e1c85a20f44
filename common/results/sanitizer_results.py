#!/usr/bin/env python3
"""Makes a result file of a run of the tests under compute-sanitizer.

    sanitizer_results.py JUNIT HEADER OUTPUT

JUNIT is what `ctest --preset sanitize --output-junit JUNIT --test-output-size-passed 100000` wrote; HEADER is a result
file of a program of the same build, which says date, commit, GPU, driver and toolkit. Exit code 1: a test failed, or none
ran; the file is written all the same. Exit code 2: bad input, one line.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from climb_table import BadInput, read_results
from ending import end_with
from json_rows import json_rows
from whole_file import write_whole

OUTCOMES = {"run": "passed", "fail": "failed", "notrun": "skipped"}
# <test>:<tool>:<the place that the tool names> of the kernels that are right: the list of Sanitize.cmake.
ALARM = re.compile(r'^ +"(\w+):(\w+):(.*)"', re.MULTILINE)
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)\b(?! were not printed)")


def false_alarms():
    """{(program, tool): the place}"""
    text = (Path(__file__).resolve().parents[1] / "cmake/Sanitize.cmake").read_text(encoding="utf-8")
    return {(program, tool): re.compile(place, re.DOTALL) for program, tool, place in ALARM.findall(text)}


def counts_anew(program, tool, said, errors):
    """Does a false alarm differ from the record only in the number of its errors? Then this is the new number."""
    place = false_alarms().get((program, tool))
    tests_failed = "FAILED:" in said and tool != "synccheck"  # which stops the kernel
    return bool(place and errors and place.search(said) and not tests_failed)


def read_test(case):
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


def from_junit(junit, header, read, key):
    """The head of a result file, and a row for each test of ctest's file, in the order of `key`."""
    try:
        cases = ElementTree.parse(junit).getroot().iter("testcase")
        tests = sorted((read(case) for case in cases), key=key)
    except (OSError, ElementTree.ParseError, ValueError) as error:
        raise BadInput(f"{junit}: {error}") from None
    if not tests:
        raise BadInput(f"{junit}: no tests")
    results = read_results(header)
    return {**{key: results[key] for key in ("date", "commit", "gpu", "driver", "toolkit")}, "tests": tests}


def collect(junit, header):
    return from_junit(junit, header, read_test, lambda test: (test["program"], test["tool"]))


def write_from_arguments(collect_tests, outcome):
    """Writes the file, and returns the exit code; `outcome`: what a row calls it."""
    if len(sys.argv) != 4:
        raise BadInput("needs the file of ctest, a result file and the file to write")
    results = collect_tests(Path(sys.argv[1]), Path(sys.argv[2]))
    output = Path(sys.argv[3])
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json_rows(results))
    outcomes = [test[outcome] for test in results["tests"]]
    return 0 if "failed" not in outcomes and "passed" in outcomes else 1


if __name__ == "__main__":
    end_with(lambda: write_from_arguments(collect, "outcome"), BadInput)
