#!/usr/bin/env python3
"""Test of `ladder` on the CPU device, with all lessons: `test_climb.py PROGRAM`."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

KERNELS = ["01_naive", "02_tiled", "03_double_buffer", "04_warp_specialized", "05_ws_double_buffer", "06_clusters_dsmem"]


class Climb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            result = subprocess.run([PROGRAM, "--size", "128", "--json", path], capture_output=True, text=True, timeout=100,
                                    check=True)
            cls.lines, cls.runs = result.stdout.splitlines(), json.loads(path.read_text(encoding="utf-8"))["runs"]

    def test_no_line_is_longer_than_100_characters(self):
        self.assertLessEqual(max(map(len, self.lines)), 100)

    def test_a_lesson_has_at_most_two_rows_and_every_lesson_has_one(self):
        rows = [run["lesson"] for run in self.runs]
        self.assertEqual(list(dict.fromkeys(rows)), KERNELS + ["07_streams"])
        self.assertLessEqual(max(rows.count(lesson) for lesson in KERNELS), 2)

    def test_05_gains_over_both_lessons_that_it_builds_on(self):
        [row] = [line for line in self.lines if line.startswith("05 ")]
        self.assertRegex(row, r" \d\.\d\d, \d\.\d\d  03, 04 ")

    def test_ring_and_roles_are_four_numbers(self):
        self.assertRegex("\n".join(self.lines), r"a ring\n.* 02 +[\d.]+ +03 +[\d.]+\n +roles +04 +[\d.]+ +05 +[\d.]+\n")

    def test_the_levels_of_the_host_follow_all_verified(self):
        start = next(i for i, line in enumerate(self.lines) if line.startswith("From host memory to host memory (07)"))
        levels = [line for line in self.lines[start + 3:] if line[:1].isdigit()]
        self.assertEqual([line[0] for line in levels], list("01234"))
        self.assertTrue(all(" yes " in line for line in levels))
        self.assertEqual([run["settings"]["level"] for run in self.runs if run["lesson"] == "07_streams"], list("01234"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(argv=sys.argv[:1])
