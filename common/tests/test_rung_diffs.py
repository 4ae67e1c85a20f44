#!/usr/bin/env python3
"""Holds the kernels of neighbouring rungs close to each other: `test_rung_diffs.py BUILD_FOLDER`.

Counted are the lines of code that common/results/changed_lines.py counts between a rung's gemm.cuh and that of a rung that it
builds on.
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "common/results"))
from changed_lines import changed_lines  # noqa: E402
from lattice import lessons_below  # noqa: E402

# Of 05 that to 04 counts: it is 04 with a ring.
MOST_LINES = {("02", "03"): 70, ("02", "04"): 130, ("04", "05"): 80, ("05", "06"): 110}


class RungDiffs(unittest.TestCase):
    def pairs(self):
        return [(base, name) for name, bases in lessons_below(ROOT).items() for base in bases]

    def test_neither_comments_nor_white_space_count(self):
        kernel = "int a;\nint b;  // as it was\n/* and\nmore */\nf(a);\n"
        self.assertEqual(changed_lines(kernel, "/// What it is.\n\n  int a;\nint b;\n{\n  f(a);\n}\n"), 2)
        self.assertEqual(changed_lines(kernel, "int a;\nint c;\nf(a);\n"), 2)

    def test_the_diffs_between_rungs_are_their_ideas(self):
        found = {(base[:2], name[:2]): changed_lines(*((ROOT / lesson / "gemm.cuh").read_text(encoding="utf-8")
                                                       for lesson in (base, name))) for base, name in self.pairs()}
        for pair, most in MOST_LINES.items():
            self.assertIn(pair, found, "does not build on it any more")
            self.assertLessEqual(found[pair], most, f"from {' to '.join(pair)} so many lines of code change; their limit is {most}")

    def test_a_target_prints_the_diff_to_each_rung_that_is_built_on(self):
        targets = subprocess.run(["cmake", "--build", BUILD, "--target", "help"], capture_output=True, text=True, timeout=60,
                                 check=True).stdout
        self.assertEqual(sorted(set(re.findall(r"\bdiff_\d\d_\d\d\b", targets))),
                         sorted(f"diff_{base[:2]}_{name[:2]}" for base, name in self.pairs()))


if __name__ == "__main__":
    BUILD = sys.argv.pop()
    unittest.main()
