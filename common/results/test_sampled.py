#!/usr/bin/env python3
"""What the profiler samples over time becomes series of the launch's own time, a table and a picture."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sampled  # noqa: E402
import sampled_picture  # noqa: E402
from climb_table import BadInput  # noqa: E402

BEGIN = 1764000000000000000  # nanoseconds
TENSOR = "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"


def cell(samples):
    return "19.26 (0 (+0): 0; " + "; ".join(f"{at} (+2000): {value}" for at, value in samples) + ")"


def raw(columns):
    """What the profiler prints: its own lines, the names, the units, the figures."""
    quoted = [[f'"{word}"' for word in row] for row in (columns, [""] * len(columns), columns.values())]
    return "==PROF== Connected\n" + "\n".join(",".join(row) for row in quoted) + "\n"


class Series(unittest.TestCase):
    def columns(self, samples):
        return {"ID": "0", "Kernel Name": "gemm", "profiler__timestamp_workload_start_0": f"1 ({BEGIN} (+0): 0)",
                "profiler__timestamp_workload_end_0": f"1 ({BEGIN + 5000} (+0): 0)", TENSOR: cell(samples)}

    def test_samples_outside_the_launch_are_left_out_and_time_begins_with_it(self):
        samples = [(BEGIN - 2000, 1.5), (BEGIN, 20), (BEGIN + 2000, 90.5), (BEGIN + 6000, 3)]
        columns = sampled.columns_of(raw(self.columns(samples)))
        self.assertEqual(sampled.series_of(columns, sampled.SERIES["tensor"]), [(0, 20), (2, 90.5)])

    def test_a_metric_that_was_not_sampled_is_named(self):
        columns = self.columns([(BEGIN - 500000, 1)])  # in no launch
        with self.assertRaisesRegex(BadInput, "sampled no metric like"):
            sampled.series_of(columns, sampled.SERIES["tensor"])
        with self.assertRaisesRegex(BadInput, "no kernel was profiled: ==ERROR== no permission"):
            sampled.columns_of("==ERROR== no permission\n")


class Picture(unittest.TestCase):
    def test_the_table_has_steady_samples_and_the_picture_all(self):
        launch = {"lesson": "05_x", "m": 8, "n": 8, "k": 8, "settings": {"slots": "4"}, "us": [0, 20, 40, 60, 80, 100],
                  "tensor": [0, 80, 90, 100, 50, 5], "l2": [0, 50, 40, 30, 99, 0]}
        results = {"date": "2026-01-02", "commit": "abc", "gpu": "NVIDIA H200", "profiler": "1.2", "launches": [launch]}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.assertEqual(sampled_picture.sampled_text("line", ["picture=t.svg"], folder), ["Not recorded yet."])
            (folder / "2026-01-02-h200.json").write_text(json.dumps(results), encoding="utf-8")
            table = "\n".join(sampled_picture.sampled_text("line", ["picture=t.svg"], folder))
            self.assertIn("| 05_x, slots 4 | 90 ± 8.2 | 40 ± 8.2 | -1.00 |", table)
            svg = sampled_picture.sampled_pictures("line", ["picture=t.svg"], folder, folder)[folder / "t.svg"]
            self.assertEqual(svg.count("<polyline"), 2)
            self.assertIn("392.0,127.8", svg)  # the last sample: at the right end, 5 % high
            with self.assertRaises(BadInput):
                sampled_picture.sampled_text("line", ["picture=t"], folder)


if __name__ == "__main__":
    unittest.main()
