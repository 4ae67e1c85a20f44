#!/usr/bin/env python3
"""Runs a lesson's single file, and fails unless its result is verified and it refuses bad input.

    test_program.py LESSON PROGRAM

Exit codes: 0 right; 1 not; 77 there is no GPU that runs it.
"""
import re
import subprocess
import sys

from make_single_file import LESSONS

SIZE = "4096"
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


def main():
    lesson, program = sys.argv[1:]
    check_that_bad_input_is_refused(program, LESSONS[lesson].multiple)
    output = output_of(program, SIZE)
    if not re.search(r" ([\d.]+) us .* verified", output):
        sys.exit(f"not of the form '... us ... verified': {output}")
    print(output, end="")


if __name__ == "__main__":
    main()
