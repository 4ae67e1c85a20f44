#!/usr/bin/env python3
"""Runs a lesson's single file and the lesson itself in turns, and fails unless both verify and take the same time, and unless
the single file refuses bad input.

    test_speed.py LESSON SINGLE_FILE_PROGRAM LESSON_PROGRAM

Exit codes: 0 within the limit; 1 not, or a wrong result; 77 there is no GPU that runs them.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from make_single_file import LESSONS

SIZE = "4096"
ROUNDS = 3
MOST_DIFFERENCE = 0.03
LIMIT_S = 60
SKIPPED = 77
NO_GPU = re.compile(r"no CUDA-capable device|driver version is insufficient|needs code for sm_|runs none of its code|no kernel image"
                    r"|CUDA found none")


def output_of(*command):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                         timeout=LIMIT_S)
    if run.returncode:
        print(run.stdout, end="")
        sys.exit(SKIPPED if NO_GPU.search(run.stdout) else 1)
    return run.stdout


def check_that_bad_input_is_refused(program, multiple):
    cases = {("4x",): "M = 4x: must be a multiple of 1 from 1 to 32768", ("8", "8", "0"): f"K = 0: must be a multiple of {multiple} from",
             ("8", "65536", "8"): f"N = 65536: must be a multiple of {multiple} from", ("8", "8"): "2 arguments: must be M N K, or"}
    if multiple > 1:
        cases["8", "12", "8"] = "N = 12: must be a multiple of 8 from 8 to 32768"
    for words, message in cases.items():
        run = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if (run.returncode, run.stdout, run.stderr.count("\n")) != (2, "", 1) or not run.stderr.startswith(message):
            sys.exit(f"{' '.join(words)}: not refused with '{message}': {run}")


def single_file_us(program):
    output = output_of(program, SIZE)
    found = re.search(r" ([\d.]+) us .* verified", output)
    if not found:
        sys.exit(f"not of the form '... us ... verified': {output}")
    return float(found.group(1))


def lesson_us(lesson, program, json_path):
    output_of(program, "--size", SIZE, "--rounds", "3", "--json", json_path, *LESSONS[lesson].settings)
    runs = json.loads(pathlib.Path(json_path).read_text(encoding="utf-8"))["runs"]
    [run] = [run for run in runs if run["lesson"] == lesson]
    if not run["verified"]:
        sys.exit(f"{lesson}: not verified")
    return run["time_us_median"]


def main():
    lesson, single_file, program = sys.argv[1:]
    check_that_bad_input_is_refused(single_file, LESSONS[lesson].multiple)
    alone, whole = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            alone.append(single_file_us(single_file))
            whole.append(lesson_us(lesson, program, str(pathlib.Path(folder) / "lesson.json")))
    difference = statistics.median(alone) / statistics.median(whole) - 1
    print(f"{lesson}: {statistics.median(alone):.1f} us alone, {statistics.median(whole):.1f} us as the lesson: "
          f"{difference:+.1%}")
    # The lesson's program times the library as well, which heats the GPU: alone may be faster.
    sys.exit(int(difference > MOST_DIFFERENCE))


if __name__ == "__main__":
    main()
