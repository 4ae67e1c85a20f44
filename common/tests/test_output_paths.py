#!/usr/bin/env python3
"""Tests of where programs write, as a shell runs them: `test_output_paths.py LADDER`, with the program `ladder`."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SMALL = ["--lessons", "01", "--size", "16", "--no-verify"]
ladder = None


class OutputPaths(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_into(self, path, **streams):
        return subprocess.run([ladder, *SMALL, "--json", path], stderr=subprocess.PIPE, text=True, timeout=600, **streams)

    def check_table_and_results(self, text):
        table, brace, results = text.partition("\n{")
        self.assertIn("01 naive", table)
        found, end = json.JSONDecoder().raw_decode(brace.strip() + results)
        self.assertEqual(found["runs"][0]["m"], 16)
        self.assertNotIn('"runs"', (brace.strip() + results)[end:])

    def test_results_follow_the_table_once_on_a_pipe_or_a_file_that_is_stdout(self):
        for path in ("/dev/stdout", "/proc/self/fd/1"):
            result = self.run_into(path, stdout=subprocess.PIPE)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_table_and_results(result.stdout)
            output = self.folder / "out.txt"
            with output.open("w", encoding="utf-8") as file:
                result = self.run_into(path, stdout=file)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_table_and_results(output.read_text(encoding="utf-8"))

    def test_devices_stay_what_they_are(self):
        result = self.run_into("/dev/null", stdout=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_full_disk_is_a_failure_that_is_named(self):
        result = self.run_into("/dev/full", stdout=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         "ladder: error: --json '/dev/full': cannot be written: No space left on device\n")


if __name__ == "__main__":
    ladder = sys.argv.pop(1)
    unittest.main()
