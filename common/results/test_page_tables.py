#!/usr/bin/env python3
"""Tests of page_tables.py: `python3 common/results/test_page_tables.py`."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import page_tables  # noqa: E402
from climb_table import BEGIN, END, BadInput  # noqa: E402


def run(lesson, tflops, clock=1000, size=64, **settings):
    return {"lesson": lesson, "core": "fma", "m": size, "n": size, "k": size, "settings": settings,
            "time_us_median": 10, "tflops": tflops, "sm_clock_mhz": clock, "verified": True}


class PageTables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = page_tables.RESULTS = Path(folder.name)
        self.record("r.json", run("01_x", 100, slots="1"), run("01_x", 200, clock=800, slots="2"),
                    run("cublas_gemmex", 400, b="row-major"))

    def record(self, name, *runs):
        results = {"date": "today", "commit": "abc", "gpu": "G", "driver": "1", "toolkit": "T", "runs": runs}
        (self.folder / name).write_text(json.dumps(results), encoding="utf-8")

    def filled(self, text):
        page = self.folder / "page.md"
        page.write_text(text, encoding="utf-8")
        return page_tables.filled(page)[0]

    def test_a_row_says_the_gain_over_the_first_in_time_and_per_clock(self):
        text = self.filled("a\n<!-- table: r.json rows=slots -->\n<!-- end -->\nb\n")
        self.assertIn("| `1` | 10 | 100 | 25 % | 1000 | 1.00 | 1.00 |", text)
        self.assertIn("| `2` | 10 | 200 | 50 % | 800 | 2.00 | 2.50 |", text)

    def test_what_stands_around_a_table_is_kept_and_filling_again_changes_nothing(self):
        text = self.filled("a\n<!-- table: r.json rows=slots -->\nold\n<!-- end -->\nb\n")
        self.assertTrue(text.startswith("a\n<!-- table:") and text.endswith("<!-- end -->\nb\n"))
        self.assertNotIn("old", text)
        self.assertEqual(text, self.filled(text))

    def test_two_settings_make_rows_and_columns(self):
        self.record("p.json", *(run("01_x", 100 * s * c, slots=str(s), copy=str(c)) for s in (1, 2) for c in (1, 3)))
        text = self.filled("<!-- table: p.json rows=copy columns=slots -->\n<!-- end -->")
        self.assertIn("| TFLOP/s by copy | slots 1 | slots 2 |", text)
        self.assertIn("| `3` | 300 | 600 |", text)

    def test_runs_that_would_share_a_place_are_refused(self):
        self.record("p.json", run("01_x", 1, slots="1", copy="a"), run("01_x", 2, slots="1", copy="a", size=32))
        with self.assertRaisesRegex(BadInput, "share a place"):
            self.filled("<!-- table: p.json rows=copy columns=slots -->\n<!-- end -->")

    def test_other_ways_are_compared_with_the_kernel_in_time_and_bytes(self):
        one, two = run("01_x", 200), run("01_x", 100, instead="two kernels")
        one.update(time_us_median=10, global_bytes=1e6)
        two.update(time_us_median=20, global_bytes=3e6)
        self.record("w.json", one, two)
        text = self.filled("<!-- table: w.json rows=instead -->\n<!-- end -->")
        self.assertIn("| in one kernel, 64³ | 10 | 200 | 1000 | 1.00 | 1 |", text)
        self.assertIn("| two kernels, 64³ | 20 | 100 | 1000 | 2.00 | 3 |", text)

    def test_only_narrows_the_runs_down(self):
        text = self.filled("<!-- table: r.json rows=slots only=slots:2,lesson:01_x -->\n<!-- end -->")
        self.assertNotIn("`1`", text)
        with self.assertRaisesRegex(BadInput, "no run"):
            self.filled("<!-- table: r.json only=size:4096 -->\n<!-- end -->")

    def test_the_climb_is_that_of_the_newest_result_file(self):
        self.record("s.json", run("01_x", 77), run("cublas_gemmex", 100, b="row-major"))
        self.assertIn("77", self.filled(f"{BEGIN}\n{END}\n"))

    def test_bad_requests_are_named(self):
        for line, message in (("r.json rows=slots -->\n", "has no <!-- end -->"),
                              ("r.json sort=slots -->\n<!-- end -->", "'sort=slots' is neither"),
                              ("missing.json -->\n<!-- end -->", "missing.json: No such file")):
            with self.assertRaisesRegex(BadInput, message):
                self.filled("<!-- table: " + line)


if __name__ == "__main__":
    unittest.main()
