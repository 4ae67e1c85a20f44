#!/usr/bin/env python3
"""Test of `ladder` on the CPU device, with all lessons: `test_climb.py PROGRAM`."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

KERNELS = ["01_naive", "02_tiled", "03_double_buffer", "04_warp_specialized", "05_ws_double_buffer", "06_clusters_dsmem",
           "06_any_shape"]


class Climb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            result = subprocess.run([PROGRAM, "--size", "128", "--json", path], capture_output=True, text=True, timeout=600,
                                    check=True)
            cls.lines, cls.runs = result.stdout.splitlines(), json.loads(path.read_text(encoding="utf-8"))["runs"]

    def test_no_line_is_longer_than_100_characters(self):
        self.assertLessEqual(max(map(len, self.lines)), 100)

    def test_every_lesson_has_a_row_and_none_more_than_six(self):
        rows = [run["lesson"] for run in self.runs]
        self.assertEqual(list(dict.fromkeys(rows)), KERNELS + ["07_streams"])
        self.assertLessEqual(max(rows.count(lesson) for lesson in KERNELS), 6)
        self.assertLessEqual(sum(rows.count(lesson) for lesson in KERNELS), 24)

    def test_a_row_names_the_one_that_it_gains_over(self):
        counted, measured = [line for line in self.lines if re.match(r"05\.1 +ring", line)]
        self.assertRegex(measured, r" \d\.\d\d +04( |$)")
        self.assertNotRegex(counted, r" 04( |$)")

    def test_what_was_counted_here_and_what_was_measured_are_tables_with_a_size_each(self):
        sizes = [i for i, line in enumerate(self.lines) if line.endswith(("(M x N x K)", "(M x N x K):"))]
        self.assertRegex(self.lines[sizes[0]], "^128x128x128 ")
        self.assertRegex(self.lines[sizes[1]], "^Measured on an NVIDIA .* at 8192x8192x8192 ")

    def test_the_last_lines_say_what_was_run_and_what_comes_next(self):
        self.assertRegex(self.lines[-5], "^What was run: ")
        self.assertIn("01_naive/README.md", self.lines[-2])
        self.assertIn("ladder learn next", self.lines[-1])

    def test_each_gain_has_its_cause(self):
        self.assertRegex("\n".join(self.lines), r"04\.2 over 04\.1 +\w")

    def test_the_levels_of_the_host_follow_all_verified(self):
        start = next(i for i, line in enumerate(self.lines) if line.startswith("From host memory to host memory (07)"))
        end = self.lines.index("", start)
        levels = [line for line in self.lines[start + 3:end] if line[:1].isdigit()]
        self.assertEqual([line[0] for line in levels], list("01234"))
        self.assertTrue(all(line.split()[-1] == "yes" for line in levels))
        self.assertEqual([run["settings"]["level"] for run in self.runs if run["lesson"] == "07_streams"], list("01234"))

    def test_the_levels_that_were_measured_are_a_table_of_their_own(self):
        start = next(i for i, line in enumerate(self.lines) if line.startswith("Measured on an NVIDIA ") and "batches of" in line)
        levels = [line for line in self.lines[start + 3:] if line[:1].isdigit()]
        self.assertEqual([line[0] for line in levels], list("01234"))
        for line in levels:
            self.assertRegex(line, r" \d+\.\d +(-|\d\.\d\d) +\d+\.\d +\w+$")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(argv=sys.argv[:1])
