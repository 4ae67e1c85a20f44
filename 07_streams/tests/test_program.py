#!/usr/bin/env python3
"""Tests of the program itself, as a shell runs it: `test_program.py PROGRAM`. Exit code 77: there is no GPU for it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_SKIPPED = 2, 130, 77
SMALL = ["--shape", "40x64x64", "--batches", "5", "--streams", "2", "--slots", "2"]
program = None


def run(*options, **environment):
    return subprocess.run([program, *options], capture_output=True, text=True, timeout=600, env={**os.environ, **environment})


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.result_file = pathlib.Path(folder.name) / "results.json"

    def test_levels_are_printed_and_recorded(self):
        result = run(*SMALL, "--level", "0,4", "--json", self.result_file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("nothing (kernel of 02)", result.stdout)
        runs = json.loads(self.result_file.read_text(encoding="utf-8"))["runs"]
        expected = ["0"] if "no level 4: its kernel does not run here" in result.stdout else ["0", "4"]
        self.assertEqual([run["settings"]["level"] for run in runs], expected)
        self.assertTrue(all(run["verified"] and run["bound_us"] > 0 for run in runs))

    def test_the_list_begins_with_the_levels(self):
        self.assertTrue(run("--list").stdout.startswith("levels "))

    def test_bad_input_is_one_line_that_names_the_option(self):
        for options, words in ((["--level", "5"], "--level '5': must be"),
                               (["--streams", "0"], "--streams '0': must be"),
                               (["--experiment", "x"], "--experiment x: must be one of levels"),
                               (["--shape", "8x8x9"], "k = 9: must be a multiple of 8")):
            result = run(*options)
            self.assertEqual(result.returncode, EXIT_BAD_INPUT, options)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_the_cpu_device_times_nothing_and_has_no_memory_to_waste(self):
        if "CPU device" not in run(*SMALL).stdout:
            self.skipTest("a GPU times, and has memory")
        for options, words in ((["--rounds", "5"], "--rounds: only on a GPU"),
                               (["--experiment", "fragments"], "MB are free; other programs may hold the rest")):
            result = run(*options, *SMALL, LADDER_CPU_DEVICE_MIB="8")
            self.assertEqual(result.returncode, EXIT_BAD_INPUT, result.stderr)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_what_was_measured_is_recorded_when_a_later_shape_fails(self):
        result = run("--shape", "40x64x64,40x64x65", *SMALL[2:], "--level", "3", "--json", self.result_file)
        self.assertEqual(result.returncode, EXIT_BAD_INPUT, result.stderr)
        self.assertIn("k = 65: must be a multiple of 8", result.stderr)
        runs = json.loads(self.result_file.read_text(encoding="utf-8"))["runs"]
        self.assertEqual([run["k"] for run in runs], [64])

    def test_ctrl_c_ends_it_with_one_line_and_no_result_file(self):
        options = ["--shape", "64x256x256", "--batches", "100000", "--json", self.result_file]
        with subprocess.Popen([program, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            self.assertTrue(process.stdout.readline())  # Ctrl-C is caught from before this line on.
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=600)[1]
        self.assertEqual(process.returncode, EXIT_INTERRUPTED, error)
        self.assertRegex(error, r"\A07_streams: interrupted .*\n\Z")
        self.assertFalse(self.result_file.exists())


if __name__ == "__main__":
    program = sys.argv.pop(1)
    missing = run(*SMALL).stderr
    if "CUDA found none" in missing or "needs code for sm_" in missing:
        print(missing)
        sys.exit(EXIT_SKIPPED)
    unittest.main()
