#!/usr/bin/env python3
"""Holds each step of the climb close to the one that it builds on: `test_rung_diffs.py BUILD_FOLDER`.

Counted are the lines of code that common/results/tree_tables.py counts between a step's kernel and that of the step that it
builds on.
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "common/results"))
from tree_tables import changed_lines  # noqa: E402
from lattice import diffs, diffs_of_attention  # noqa: E402

MOST_LINES, MOST_LINES_OF_ATTENTION = 60, 80


class RungDiffs(unittest.TestCase):
    def test_neither_comments_nor_white_space_count(self):
        kernel = "int a;\nint b;  // as it was\n/* and\nmore */\nf(a);\n"
        self.assertEqual(changed_lines(kernel, "/// What it is.\n\n  int a;\nint b;\n{\n  f(a);\n}\n"), 2)
        self.assertEqual(changed_lines(kernel, "int a;\nint c;\nf(a);\n"), 2)

    def test_the_diffs_between_steps_are_their_ideas(self):
        self.assertEqual(len(diffs()), 22)
        self.assertEqual([step.diff for step, _ in diffs_of_attention()], [f"diff_attention_{i}_{i + 1}" for i in range(1, 5)])
        for most, pairs in ((MOST_LINES, diffs()), (MOST_LINES_OF_ATTENTION, diffs_of_attention())):
            for step, base in pairs:
                with self.subTest(step.diff):
                    old, new = ((ROOT / one.kernel).read_text(encoding="utf-8") for one in (base, step))
                    self.assertIn(changed_lines(old, new), range(1, most + 1))

    def test_a_target_prints_what_each_step_changes(self):
        targets = subprocess.run(["cmake", "--build", BUILD, "--target", "help"], capture_output=True, text=True, timeout=600,
                                 check=True).stdout
        self.assertEqual(set(re.findall(r"\bdiff_\w+", targets)), {step.diff for step, _ in diffs() + diffs_of_attention()})


if __name__ == "__main__":
    BUILD = sys.argv.pop()
    unittest.main()
