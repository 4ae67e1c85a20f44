#!/usr/bin/env python3
"""Tests of record.py, with small programs that write a result file."""
import contextlib
import dataclasses
import io
import json
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import record
import records as list_of_records
import stale
from climb_table import BadInput
from record_files import shared
from records import Record

HEAD = {"date": "2026-11-25", "commit": "0123456789ab", "gpu": "NVIDIA H200", "driver": "580", "toolkit": "CUDA 13.0"}
WRITES = f"import json, os, sys; json.dump({{**{HEAD!r}, 'commit': os.environ['LADDER_COMMIT'], 'runs': []}}, open(sys.argv[1], 'w'))"


class Recording(unittest.TestCase):
    """Of records that small programs write."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.build, self.results = self.folder / "build", self.folder / "results"
        self.build.mkdir()
        self.results.mkdir()

    def one(self, name, script=WRITES, **more):
        return Record(name, f"experiments/{{date}}-{{gpu}}-{name}.json", ((sys.executable, "-c", script, "{out}"),),
                      ("01_naive/gemm.cuh",), 3, **more)

    def record(self, records, *words, gpus=("NVIDIA H200",), commit="0123456789ab", git=lambda *words: None):
        """The exit code, and what was printed."""
        by_name = {one.name: one for one in records}
        printed = io.StringIO()
        with contextlib.ExitStack() as changes:
            for module in (record, stale):
                changes.enter_context(mock.patch.object(module, "RECORDS", records))
                changes.enter_context(mock.patch.object(module, "RESULTS", self.results))
            for module in (record, stale, list_of_records):
                changes.enter_context(mock.patch.object(module, "BY_NAME", by_name))
            changes.enter_context(mock.patch.object(record, "gpus_here", lambda: list(gpus)))
            changes.enter_context(mock.patch.object(record, "git", git))
            changes.enter_context(mock.patch.dict("os.environ", {"LADDER_COMMIT": commit}))
            changes.enter_context(mock.patch.object(sys, "argv", ["record.py", str(self.build), str(self.results), *words]))
            changes.enter_context(contextlib.redirect_stdout(printed))
            stale.todays_fingerprint.cache_clear()
            try:
                return record.main(), printed.getvalue()
            finally:
                stale.todays_fingerprint.cache_clear()

    def files(self):
        return sorted(path.name for path in self.results.rglob("*.json"))

    def test_what_runs_ends_when_the_recording_is_terminated(self):
        script = (f"import sys; sys.path.insert(0, {str(Path(record.__file__).parent)!r})\n"
                  "import pathlib, record\n"
                  "record.end_commands_when_terminated()\n"
                  "record.run([sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(60)'], "
                  f"pathlib.Path({str(self.folder / 'log')!r}), 60, 'commit')\n")
        process = subprocess.Popen([sys.executable, "-c", script])
        self.addCleanup(process.kill)
        end = time.monotonic() + 300
        while not (self.folder / "log").exists() or "\n1\n" not in (self.folder / "log").read_text(encoding="utf-8"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
        self.assertEqual(len(children), 1)
        process.terminate()
        self.assertEqual(process.wait(300), 143)
        self.assertEqual([child for child in children if Path(f"/proc/{child}").exists()], [])

    def test_what_was_recorded_is_skipped_and_what_failed_is_tried_again(self):
        good, bad = self.one("good"), self.one("bad", "import sys; sys.exit(3)")
        status, said = self.record((good, bad))
        self.assertEqual(status, 1)
        self.assertIn("ended with 3", said)
        self.assertEqual([name[10:] for name in self.files()], ["-h200-good.json"])
        status, said = self.record((good, self.one("bad")))
        self.assertEqual(status, 0)
        self.assertIn("1 of 1: bad", said)
        self.assertEqual([name[10:] for name in self.files()], ["-h200-bad.json", "-h200-good.json"])
        self.assertEqual(self.record((good, self.one("bad")))[1], "nothing is stale\n")
        self.assertIn("2 of 2", self.record((good, self.one("bad")), "--all")[1])

    def test_a_record_says_what_it_is_and_replaces_its_predecessor(self):
        folder = self.results / "experiments"
        folder.mkdir()
        (folder / "2026-01-02-h200-good.json").write_text(json.dumps({**HEAD, "runs": []}), encoding="utf-8")
        (folder / "2026-01-02-h200-very-good.json").write_text(json.dumps({**HEAD, "runs": []}), encoding="utf-8")
        self.record((self.one("good"),))
        self.assertEqual([name[10:] for name in self.files()], ["-h200-very-good.json", "-h200-good.json"])
        written_file = json.loads((folder / self.files()[1]).read_text(encoding="utf-8"))
        self.assertEqual(list(written_file)[:5], ["date", "commit", "record", "fingerprint", "seconds"])
        self.assertEqual(written_file["commit"], "0123456789ab")
        self.assertEqual(written_file["record"], "good")

    def in_files(self):
        """{file: the records in it}"""
        return {path.name: [part.document["record"] for part in shared(path)] for path in self.results.rglob("*.json")}

    def test_records_share_a_file_and_a_new_one_takes_the_place_of_its_predecessor_alone(self):
        one, other = (dataclasses.replace(self.one(name), file="experiments/{gpu}-05.json") for name in ("one", "other"))
        self.record((other, one), gpus=("NVIDIA H100 80GB HBM3",))
        self.assertEqual(self.in_files(), {"h100-05.json": ["one", "other"]})
        path = self.results / "experiments/h100-05.json"
        before = path.read_text(encoding="utf-8")
        self.assertEqual(self.record((one, other))[1], "nothing is stale\n")
        self.record((one, other), "other", "--all")
        self.assertEqual(self.in_files(), {"h100-05.json": ["one"], "h200-05.json": ["other"]})
        self.assertIn(path.read_text(encoding="utf-8").removeprefix('{\n"records":[\n').removesuffix("\n]\n}\n"), before)
        self.record((one, other), "--all")
        self.assertEqual(self.in_files(), {"h200-05.json": ["one", "other"]})

    def test_what_another_machine_recorded_in_a_file_of_its_own_comes_to_where_it_belongs(self):
        self.record((self.one("one"), self.one("other")))
        there, self.results = self.results, self.folder / "here"
        one, other = (dataclasses.replace(self.one(name), file="experiments/{gpu}-05.json") for name in ("one", "other"))
        self.record((one, other), "--adopt", str(there))
        self.assertEqual(self.in_files(), {"h200-05.json": ["one", "other"]})
        self.assertEqual(self.record((one, other))[1], "nothing is stale\n")

    def test_an_older_record_in_a_shared_file_does_not_take_the_place_of_one_of_todays_sources(self):
        one, other = (dataclasses.replace(self.one(name), file="experiments/{gpu}-05.json") for name in ("one", "other"))
        self.record((one, other))
        there, path = self.folder / "there", self.results / "experiments/h200-05.json"
        (there / "experiments").mkdir(parents=True)
        here = path.read_text(encoding="utf-8")
        old = here.replace(json.loads(here)["records"][0]["fingerprint"], "0" * 12)
        (there / "experiments/h200-05.json").write_text(old, encoding="utf-8")
        printed = self.record((one, other), "--adopt", str(there))[1]
        self.assertIn("left out: one of other sources", printed)
        self.assertEqual(path.read_text(encoding="utf-8"), here)

    def test_a_program_that_dies_halfway_leaves_the_old_file(self):
        self.record((self.one("good"),))
        before = {path: path.read_text(encoding="utf-8") for path in self.results.rglob("*.json")}
        half = self.one("good", "import sys; open(sys.argv[1], 'w').write('{'); sys.exit(1)")
        self.assertEqual(self.record((half,), "--all")[0], 1)
        self.assertEqual({path: path.read_text(encoding="utf-8") for path in self.results.rglob("*.json")}, before)

    def test_a_program_that_does_not_end_is_killed(self):
        endless = dataclasses.replace(self.one("endless", "import time; time.sleep(60)"), seconds=0)
        with mock.patch.object(record, "longest", lambda estimate_s: 0.2 if estimate_s == 0 else 60):
            status, said = self.record((endless, self.one("good")))
        self.assertEqual(status, 1)
        self.assertIn("was not done after", said)
        self.assertEqual([name[10:] for name in self.files()], ["-h200-good.json"])

    def test_nothing_begins_that_would_end_too_late(self):
        status, said = self.record((self.one("good"),), "--minutes", "0.01")
        self.assertEqual((status, self.files()), (1, []))
        self.assertIn("left: good, which takes 3 s", said)

    def test_a_list_names_what_is_stale_and_how_long_it_takes(self):
        status, said = self.record((self.one("good"), self.one("other")), "--list")
        self.assertEqual((status, self.files()), (0, []))
        self.assertIn("2 records, 6 s", said)

    def test_names_and_patterns_choose(self):
        records = (self.one("ablate_02"), self.one("ablate_05"), self.one("plans", only_by_name=True))
        self.assertIn("2 records", self.record(records, "--list")[1])
        self.assertIn("2 records", self.record(records, "ablate_*", "--list")[1])
        self.assertIn("1 records", self.record(records, "plans", "--list")[1])
        self.assertIn("1 records", self.record(records, "--list", "ablate_02")[1])
        with self.assertRaisesRegex(BadInput, "ablate_07: no record of this name"):
            self.record(records, "ablate_07", "--list")

    def test_records_of_several_gpus_are_left_out_where_there_is_one(self):
        _, said = self.record((self.one("good"), self.one("peers", gpus=2)))
        self.assertIn("left out: peers needs 2 GPUs", said)
        self.assertEqual([name[10:] for name in self.files()], ["-h200-good.json"])

    def test_files_are_named_after_the_gpu(self):
        for gpu, name in (("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-40GB", "a100"),
                          ("NVIDIA GeForce RTX 4090", "4090"), ("Tesla T4", "t4")):
            self.assertEqual(record.short_name(gpu), name)

    def test_without_a_gpu_nothing_is_recorded(self):
        with self.assertRaisesRegex(BadInput, "there is no GPU"):
            self.record((self.one("good"),), gpus=())

    def test_what_is_made_from_records_needs_no_gpu(self):
        writes = ((sys.executable, "-c", WRITES, "{out}"),)
        first = Record("first", "{date}-{gpu}.json", writes, ("01_naive/gemm.cuh",), 1)
        made = Record("made", "made/{date}-{gpu}.json", writes, ("01_naive/gemm.cuh",), 1, inputs=("first",))
        self.record((first,))
        self.assertEqual(self.record((first, made), gpus=())[0], 0)
        self.assertEqual(len(self.files()), 2)

    def test_sources_that_are_not_committed_are_named(self):
        answers = {"rev-parse": "0123456789ab\n", "status": " M docs/lab.md\n M 01_naive/gemm.cuh\n"}
        for commit in ("", "0123456789ab"):
            with self.assertRaisesRegex(BadInput, "^01_naive/gemm.cuh: .* decides the record good"):
                self.record((self.one("good"),), commit=commit, git=lambda _, command, *words: answers[command])
        answers["status"] = " M docs/lab.md\n"
        self.assertEqual(self.record((self.one("good"),), commit="", git=lambda _, command, *words: answers[command])[0], 0)

    def test_sources_that_a_record_does_not_run_need_not_be_committed(self):
        answers = {"rev-parse": "0123456789ab\n", "status": " M common/device/fma_core.cuh\n"}
        one = dataclasses.replace(self.one("good"), roots=("03_double_buffer/lesson.cu",))
        with self.assertRaisesRegex(BadInput, "^common/device/fma_core.cuh: "):
            self.record((one,), git=lambda _, command, *words: answers[command])
        one = dataclasses.replace(one, not_run=("common/device/fma_core.cuh",))
        self.assertEqual(self.record((one,), git=lambda _, command, *words: answers[command])[0], 0)

    def test_without_git_the_commit_must_be_named(self):
        with self.assertRaisesRegex(BadInput, "LADDER_COMMIT"):
            self.record((self.one("good"),), commit="")

    def test_what_another_machine_recorded_takes_the_place_of_its_predecessor(self):
        one = self.one("good")
        self.record((one,))
        here, there = self.results, self.folder / "there"
        self.results = there
        with self.assertRaisesRegex(BadInput, "holds no record"):
            self.record((one,), "--adopt", str(self.folder / "none"))
        (there / "experiments").mkdir(parents=True)
        (there / "experiments/2026-01-02-h200-good.json").write_text("{}", encoding="utf-8")
        self.record((one,), "--adopt", str(here))
        self.assertEqual([path.read_text(encoding="utf-8") for path in there.rglob("*.json")],
                         [path.read_text(encoding="utf-8") for path in here.rglob("*.json")])

    def test_a_record_that_each_gpu_has_replaces_only_the_file_of_its_gpu(self):
        (self.results / "experiments").mkdir()
        names = "2026-01-02-h100-good.json", "2026-01-02-h200-good.json"
        for name in names:
            (self.results / "experiments" / name).write_text("{}", encoding="utf-8")
        self.record((self.one("good", of_each_gpu=True),), "--all")
        left = {path.name for path in self.results.rglob("*.json")}
        self.assertEqual((len(left), left & set(names)), (2, {names[0]}))

    def test_a_timeline_keeps_its_line(self):
        line = '{"traceEvents":[],"metadata":{"date":"2026-11-25","commit":"0123456789ab"}}'
        writes = f"import sys; open(sys.argv[1], 'w').write({line + chr(10)!r})"
        self.record((Record("timeline_x", "traces/x.json", ((sys.executable, "-c", writes, "{out}"),), ("01_naive/gemm.cuh",), 1),))
        text = (self.results / "traces/x.json").read_text(encoding="utf-8")
        self.assertEqual(text.count("\n"), 1)
        self.assertEqual(json.loads(text)["metadata"]["record"], "timeline_x")

    def test_a_record_made_of_others_is_stale_when_one_of_them_is_new(self):
        writes = ((sys.executable, "-c", WRITES, "{out}"),)
        first = Record("first", "{date}-{gpu}.json", writes, ("01_naive/gemm.cuh",), 1)
        made = Record("made", "made/{date}-{gpu}.json", writes, ("01_naive/gemm.cuh",), 1, inputs=("first",))
        self.record((first, made))
        self.assertEqual(self.record((first, made))[1], "nothing is stale\n")
        path = next(self.results.glob("*.json"))
        path.write_text(path.read_text(encoding="utf-8").replace("580", "590"), encoding="utf-8")
        self.assertEqual([other.name for other in self.results.rglob("*.json")], [path.name] * 2)
        self.assertIn("1 of 1: made", self.record((first, made))[1])
        path.unlink()
        self.assertIn("2 of 2: made", self.record((first, made))[1])


if __name__ == "__main__":
    unittest.main()
