#!/usr/bin/env python3
"""Makes a result file of a run of all tests on a GPU: a row for each test.

    gpu_test_results.py JUNIT HEADER OUTPUT

JUNIT is what `ctest --output-junit JUNIT --test-output-size-passed 100000` wrote; HEADER is a result file of a program of the
same build, which says date, commit, GPU, driver and toolkit. Exit code 1: a test failed, or none passed; the file is written
all the same. Exit code 2: bad input, one line.
"""
import re
from pathlib import Path

from climb_table import BadInput
from ending import end_with
from sanitizer_results import OUTCOMES, from_junit, write_from_arguments

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


def read_test(case):
    row = {"name": case.get("name"), "status": OUTCOMES.get(case.get("status"), "failed"),
           "seconds": round(float(case.get("time")), 1)}
    return {**row, "reason": reason_of(case)} if row["status"] == "skipped" else row


def collect(junit, header):
    return from_junit(junit, header, read_test, lambda test: test["name"])


if __name__ == "__main__":
    end_with(lambda: write_from_arguments(collect, "status"), BadInput)
