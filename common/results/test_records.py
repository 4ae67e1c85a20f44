#!/usr/bin/env python3
"""Holds the files of docs/results to their form and their budget, and random shapes, whose seed they name, to what they were; and
tests of script.py: what a script writes to."""
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import record_files
from climb_table import fastest_library
from records import random_shapes
from script import can_be_rewritten, json_rows, write_whole

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"
MOST_LINES = 15200


def records():
    return sorted(path for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".md")


def shortest(text):
    """The same text with the fewest digits that tell each number apart; programs may write one more."""
    return re.sub(r"(?<=[:,\[])-?\d+\.\d+(e[-+]?\d+)?(?=[,}\]\n])", lambda number: repr(float(number[0])), text)


class Records(unittest.TestCase):
    def test_a_row_is_a_line_and_the_document_is_read_back(self):
        document = {"date": "2026-11-21", "runs": [{"m": 1, "settings": {"a": "µ"}}, {"m": 2.5, "missing": None}],
                    "absent": [], "pictures": {"lines": ["x", "y"]}}
        text = json_rows(document)
        self.assertEqual(text.splitlines(), [
            "{", '"date":"2026-11-21",', '"runs":[', '{"m":1,"settings":{"a":"µ"}},', '{"m":2.5,"missing":null}', "],",
            '"absent":[],', '"pictures":{"lines":["x","y"]}', "}"])
        self.assertEqual(json.loads(text), document)

    def test_all_records_together_keep_their_budget(self):
        lines = sum(path.read_bytes().count(b"\n") for path in records())
        self.assertLessEqual(lines, MOST_LINES)

    def test_every_record_has_a_row_on_a_line_and_a_timeline_is_one_line(self):
        for path in records():
            if path.suffix != ".json":
                continue
            text = path.read_text(encoding="utf-8")
            with self.subTest(path.relative_to(RESULTS)):
                if path.parent.name == "traces":
                    self.assertEqual(text.count("\n"), 1)
                else:  # assertEqual would print the whole file
                    parts = record_files.shared(path)
                    written = record_files.text_of(parts) if parts else json_rows(json.loads(text))
                    self.assertTrue(shortest(text) == written, "is not as json_rows() writes it")

    def test_no_clock_is_above_the_maximum_of_its_gpu(self):
        counted = 0
        for path in record_files.each(RESULTS):
            content = json.loads(path.read_text(encoding="utf-8"))
            clocks = [run["clock_mhz"] for run in content.get("runs", []) if "clock_mhz" in run]
            counted += len(clocks)
            with self.subTest(path.relative_to(RESULTS)):
                # A step of the global timer beside a sample of 12 ms is less than this.
                self.assertLessEqual(max(clocks, default=0), content.get("max_clock_mhz", 0) * 1.001)
        self.assertGreater(counted, 0)

    def test_of_the_same_experiment_only_one_record_is_kept(self):
        kept = {}
        for path in record_files.each(RESULTS):
            name = path.name if isinstance(path, record_files.Part) else path.parent / re.sub(r"^\d{4}-\d\d-\d\d-", "", path.name)
            with self.subTest(path.relative_to(RESULTS)):
                self.assertIs(kept.setdefault(name, path), path, "the older one is read by nothing")


def newest(test, experiment):
    """The rows of its newest record; without one the test is skipped."""
    path = record_files.newest(RESULTS, f"experiments/{experiment}")
    if path is None:
        test.skipTest(f"{experiment} is not recorded yet")
    return json.loads(path.read_text(encoding="utf-8"))["runs"]


class Streams(unittest.TestCase):
    """What pages of 07_streams/deeper say of their tables."""

    def test_a_launch_for_each_batch_is_bound_by_the_host_and_a_graph_or_a_queue_is_not(self):
        rows = {(run["settings"]["how"], int(run["settings"]["steps"])): run["settings"] for run in newest(self, "overhead")}
        launches, graph, queue, alone = "a launch for each", "one graph", "a queue", "one kernel that knows them all"
        work = sorted({steps for _, steps in rows})
        cost = {key: float(settings["us_a_batch"]) for key, settings in rows.items()}
        self.assertGreater(float(rows[launches, 0]["host_us_a_batch"]), .85 * cost[launches, 0])
        for how in (graph, queue):
            self.assertLess(cost[how, 0], cost[launches, 0] / 2)
            self.assertLess(float(rows[how, 0]["host_us_a_batch"]), cost[how, 0] * .6)
        for steps in work:
            for how in (launches, graph, queue):
                with self.subTest(how=how, steps=steps):
                    self.assertLess(cost[alone, steps], cost[how, steps])
        for how in (launches, graph, queue):  # most of it is hidden behind the largest batch
            self.assertLess(cost[how, work[-1]] - cost[alone, work[-1]], cost[launches, 0] / 2)

    def test_the_host_spends_no_more_time_in_allocations_than_a_row_takes(self):
        batches = 40  # of 07_streams on a GPU
        for run in newest(self, "alloc"):
            with self.subTest(memory=run["settings"]["memory"], n=run["n"]):
                self.assertLessEqual(float(run["settings"]["host_us_in_calls"]) * batches, run["time_us_median"] * 1.01)

    def test_only_cudamalloc_gets_what_every_second_piece_leaves(self):
        got = {run["settings"]["allocator"]: run["settings"]["gets_it"] for run in newest(self, "fragments")
               if run["settings"]["requests"] == "every second stays"}
        self.assertEqual([allocator for allocator, answer in got.items() if answer == "yes"], ["cudaMalloc"])
        self.assertGreaterEqual(len(got), 5)


class RolesOnSmallProblems(unittest.TestCase):
    """What 04_warp_specialized/deeper/small_problems.md says of its record."""

    def test_roles_gain_at_every_size(self):
        times = {(run["m"], run["settings"]["slots"], run["settings"]["roles"]): run["time_us_median"]
                 for run in newest(self, "small_cube") if "roles" in run["settings"]}
        self.assertEqual({size for size, _, _ in times}, {256, 512, 1024, 2048})
        for size, slots, roles in times:
            if roles == "off":
                with self.subTest(size=size, slots=slots):
                    self.assertGreater(times[size, slots, "off"], times[size, slots, "on"])


class BesideTheLibrary(unittest.TestCase):
    """What docs/climb.md says of its record."""

    def test_lesson_05_is_within_a_percent_of_the_fastest_library(self):
        runs = newest(self, "library")
        speeds = {run["m"]: run["tflops"] for run in runs if run.get("rung") == "05"}
        self.assertEqual(speeds.keys(), {4096, 8192})
        for size, speed in speeds.items():
            with self.subTest(size=size):
                self.assertGreaterEqual(speed, 0.99 * fastest_library(runs, (size,) * 3)["tflops"])


class RandomShapes(unittest.TestCase):
    def test_a_seed_gives_the_shapes_that_it_always_gave(self):
        # Records name their seed: another generator would need another name.
        self.assertEqual(random_shapes(16, 3), [(353, 984, 3016), (2767, 600, 6120), (12094, 448, 10720)])
        self.assertEqual(random_shapes(16, 20), random_shapes(16, 40)[:20])

    def test_another_seed_gives_other_shapes(self):
        self.assertFalse(set(random_shapes(1, 40)) & set(random_shapes(2, 40)))

    def test_shapes_are_those_that_lessons_run_and_all_different(self):
        shapes = random_shapes(3, 1000)
        self.assertEqual(len(set(shapes)), 1000)
        for m, n, k in shapes:
            self.assertTrue(16 <= m <= 16384 and 128 <= n <= 19000 and 88 <= k <= 19000, (m, n, k))
            self.assertEqual((n % 8, k % 8), (0, 0))
            self.assertTrue(0.5e9 <= 2 * m * n * k <= 6000e9, (m, n, k))

    def test_sizes_of_every_magnitude_are_there(self):
        rows = [m for m, _, _ in random_shapes(4, 400)]
        for least in (16, 64, 256, 1024, 4096):
            self.assertTrue(any(least <= m < 4 * least for m in rows), least)


FOLDER = Path(__file__).resolve().parent


def script(path, **streams):
    """A script that writes to the path, by itself."""
    code = "import sys; from script import write_whole; print('before'); write_whole(sys.argv[1], 'text')"
    return subprocess.run([sys.executable, "-c", code, path], env={**os.environ, "PYTHONPATH": str(FOLDER)}, text=True,
                          stderr=subprocess.PIPE, check=False, timeout=600, **streams)


class WholeFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_pipe_is_written_to_and_stays_a_pipe(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertFalse(can_be_rewritten(pipe))
        write_whole(pipe, "through")
        self.assertEqual(os.read(reader, 100), b"through")
        self.assertTrue(pipe.is_fifo())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["pipe"])

    def test_of_a_link_the_target_is_replaced_and_keeps_its_permissions(self):
        target, link = self.folder / "target", self.folder / "link"
        target.write_text("old", encoding="utf-8")
        target.chmod(0o640)
        link.symlink_to("target")
        write_whole(link, "new")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_text(encoding="utf-8"), "new")
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o640)

    def test_a_new_file_may_be_read_by_whom_the_umask_lets(self):
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)
        write_whole(self.folder / "new", "text")
        self.assertEqual(stat.S_IMODE((self.folder / "new").stat().st_mode), 0o644)

    def test_devices_stay_and_stdout_gets_what_is_for_it(self):
        self.assertEqual(script("/dev/null", stdout=subprocess.PIPE).stdout, "before\n")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertEqual(script("/dev/stdout", stdout=subprocess.PIPE).stdout, "before\ntext")
        output = self.folder / "output"
        with output.open("w", encoding="utf-8") as file:
            script("/dev/stdout", stdout=file)
        self.assertEqual(output.read_text(encoding="utf-8"), "before\ntext")

    def test_a_full_disk_is_a_failure_with_its_reason(self):
        ran = script("/dev/full", stdout=subprocess.PIPE)
        self.assertEqual((ran.returncode, ran.stderr), (1, "-c: error: /dev/full: cannot be written: No space left on "
                                                           "device\n"))


if __name__ == "__main__":
    unittest.main()
