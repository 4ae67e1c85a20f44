#!/usr/bin/env python3
"""Tests of fingerprint.py and stale.py, and that no record is stale that may not be: with or without the history."""
import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import stale
from fingerprint import Commit, Missing, WorkingTree, changed, fingerprint, git, sources
from record_files import each
from records import BY_NAME, RECORDS, program_roots


def written(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_cuh", ".cuh").replace("_hpp", ".hpp").replace("_cpp", ".cpp").replace("_patch", ".patch")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Fingerprints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        written(self.folder, a__gemm_cuh='#include "common/ptx/tma.cuh"\n#include "common/host/x.hpp"\nint f(int a) { return a; }\n',
                common__ptx__tma_cuh='void t() { asm("mov.u32 %0, %1;"); }\n', common__host__x_hpp="int host;\n")

    def now(self, *roots):
        return fingerprint(WorkingTree(self.folder), roots or ("a/gemm.cuh",))

    def test_comments_blanks_and_prose_keep_it(self):
        before = self.now()
        written(self.folder, a__gemm_cuh='/// @file\n#include "common/ptx/tma.cuh"\n#include "common/host/x.hpp"\n'
                                         "int f(  // why\n    int a) {\n  /* two\n lines */ return a;\n}\n")
        self.assertEqual(self.now(), before)
        written(self.folder, a__gemm_cuh='#include "common/ptx/tma.cuh"\nint f(int a) { return a; }\n')
        other = self.now()
        self.assertNotEqual(other, before)  # an include less

    def test_prose_does_not_count_but_words_and_instructions_do(self):
        def of(text):
            written(self.folder, a__gemm_cuh=f'const char* a = "{text}";\n')
            return self.now()
        self.assertEqual(of("slower than before"), of("as fast as ever"))
        self.assertNotEqual(of("128x256"), of("128x128"))
        written(self.folder, a__gemm_cuh='#include "common/ptx/tma.cuh"\n')
        before = self.now()
        written(self.folder, common__ptx__tma_cuh='void t() { asm("mov.u64 %0, %1;"); }\n')
        self.assertNotEqual(self.now(), before)

    def test_host_code_keeps_it_and_what_a_header_declares_does_not(self):
        before = self.now()
        written(self.folder, common__host__x_hpp="int other;\n")
        self.assertEqual(self.now(), before)
        written(self.folder, a__gemm_cuh='#include "b.hpp"\n', a__b_hpp="int b();\n")
        before = self.now()
        written(self.folder, a__b_cpp="int b() { return 1; }\n")
        self.assertNotEqual(self.now(), before)
        self.assertEqual(list(sources(WorkingTree(self.folder), ("a/gemm.cuh",))), ["a/gemm.cuh", "a/b.cpp", "a/b.hpp"])

    def test_digit_separators_are_no_characters(self):
        written(self.folder, a__gemm_cuh="int a = 1'000;  // one\nint b = 2'000;\n")
        before = self.now()
        written(self.folder, a__gemm_cuh="int a = 1'000;  // two\nint b = 2'000;\n")
        self.assertEqual(self.now(), before)

    def test_of_a_patch_only_its_changes_count(self):
        def of(text):
            (self.folder / "a.patch").write_text(text, encoding="utf-8")
            return self.now("*.patch")
        first = of("Mistake: one\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n context\n-f();\n+g();\n")
        self.assertEqual(first, of("Mistake: told better\n--- a/x\n+++ b/x\n@@ -7,2 +7,2 @@\n other\n-f();\n+g();  // why\n"))
        self.assertNotEqual(first, of("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n context\n-f();\n+h();\n"))

    def test_each_mistake_of_a_file_counts_as_a_patch_of_its_own(self):
        patches = {name: f"Mistake: {name}\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-f();\n+{name}();\n\n" for name in ("one", "two")}
        for name, text in patches.items():
            written(self.folder, **{f"broken__{name}_patch": text})
        pattern, root = self.now("broken/*.patch"), self.now("broken/two.patch")
        for name in patches:
            (self.folder / "broken" / f"{name}.patch").unlink()
        written(self.folder, broken__mistakes_patch="All.\n\n" + "".join(f"## {name}\n{text}" for name, text in patches.items()))
        self.assertEqual((self.now("broken/*.patch"), self.now("broken/two.patch")), (pattern, root))
        written(self.folder, broken__mistakes_patch="## one\n+other();\n## two\n" + patches["two"])
        self.assertEqual(self.now("broken/two.patch"), root)
        self.assertNotEqual(self.now("broken/*.patch"), pattern)
        with self.assertRaisesRegex(Missing, "broken/three.patch"):
            self.now("broken/three.patch")

    def test_a_pattern_leaves_out_tests(self):
        before = self.now("a/*.cuh")
        written(self.folder, a__test_gemm_cuh="int test;\n")
        self.assertEqual(self.now("a/*.cuh"), before)
        written(self.folder, a__more_cuh="int more;\n")
        self.assertNotEqual(self.now("a/*.cuh"), before)

    def test_what_is_left_out_goes_with_what_only_it_includes(self):
        written(self.folder, a__gemm_cuh='#include "a/one.cuh"\n#include "a/other.cuh"\n', a__one_cuh='#include "a/both.cuh"\n',
                a__other_cuh='#include "a/both.cuh"\n#include "a/alone.cuh"\n', a__both_cuh="int b;\n", a__alone_cuh="int c;\n")
        tree, roots, left_out = WorkingTree(self.folder), ("a/gemm.cuh",), ("a/other.cuh",)
        self.assertEqual(sorted(sources(tree, roots, left_out)), ["a/both.cuh", "a/gemm.cuh", "a/one.cuh"])
        before = fingerprint(tree, roots, left_out=left_out)
        written(self.folder, a__other_cuh="int d;\n", a__alone_cuh="int e;\n")
        now = WorkingTree(self.folder)
        self.assertEqual(fingerprint(now, roots, left_out=left_out), before)
        self.assertEqual(changed(tree, now, roots), ["a/alone.cuh", "a/other.cuh"])
        self.assertEqual(changed(tree, now, roots, left_out), [])

    def test_a_root_that_is_missing_is_named(self):
        with self.assertRaisesRegex(Missing, "b/gemm.cuh"):
            self.now("b/gemm.cuh")

    def test_a_commit_has_the_fingerprint_of_its_own_sources(self):
        def git(*words):
            subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                           capture_output=True)
        git("init")
        git("add", ".")
        git("commit", "-m", "one")
        before = self.now()
        written(self.folder, a__gemm_cuh="int f();\n")
        then, now = Commit("HEAD", self.folder), WorkingTree(self.folder)
        self.assertEqual(fingerprint(then, ("a/*.cuh",)), before)
        self.assertEqual(changed(then, now, ("a/gemm.cuh",)), ["a/gemm.cuh", "common/ptx/tma.cuh"])
        with self.assertRaisesRegex(Missing, "72c4b82b"):
            Commit("72c4b82b", self.folder)


def edited(path, more="int x;"):
    """The sources as they lie here, but for one that says more."""
    tree, here = mock.Mock(wraps=WorkingTree()), WorkingTree()
    tree.read.side_effect = lambda asked: f"{here.read(asked)}{more}" if asked == path else here.read(asked)
    return tree


class RealRecords(unittest.TestCase):
    """Of the repository as it lies here; in a copy without history, too."""

    def test_every_file_is_one_record_and_says_which(self):
        owners = {}
        for one in RECORDS:
            for path in one.files(stale.RESULTS):
                self.assertIsNone(owners.get(str(path)), path)
                owners[str(path)] = one.name
        for path in each(stale.RESULTS):
            with self.subTest(path.relative_to(stale.RESULTS)):
                head = stale.head_of(json.loads(path.read_text(encoding="utf-8")))
                self.assertEqual(head.get("record"), owners.get(str(path)))
                self.assertIn(str(path), owners)

    def test_every_record_names_a_commit_of_the_history(self):
        # A copy of the tree may lie in another repository.
        inside = git(stale.ROOT, "rev-parse", "--is-shallow-repository", "--show-prefix")
        if inside != "false\n\n":
            self.skipTest("the history is not here")
        commits = set(git(stale.ROOT, "log", "--format=%H").split())
        for path in each(stale.RESULTS):
            head = stale.head_of(json.loads(path.read_text(encoding="utf-8")))
            with self.subTest(path.relative_to(stale.RESULTS), commit=head["commit"]):
                self.assertTrue(any(commit.startswith(head["commit"]) for commit in commits))

    def test_the_sources_of_every_record_are_there(self):
        for one in RECORDS:
            with self.subTest(one.name):
                self.assertEqual(len(stale.todays_fingerprint(one.name)), 12)

    def test_what_may_not_be_stale_is_not(self):
        self.assertLessEqual(stale.STRICT.keys(), {one.name for one in RECORDS})
        self.assertEqual(stale.broken_promises(), [])

    def test_a_program_is_decided_by_the_lessons_that_it_runs(self):
        self.assertEqual(program_roots("ladder", ("--lessons", "03,06")),
                         ("03_double_buffer/gemm.cuh", "03_double_buffer/steps/*.cuh", "05_ws_double_buffer/gemm.cuh",
                          "05_ws_double_buffer/steps/*.cuh", "06_clusters_dsmem/gemm.cuh",
                          "06_clusters_dsmem/steps/*.cuh", "06_clusters_dsmem/any_shape/gemm.cuh",
                          "06_clusters_dsmem/any_shape/kernels.cuh", "06_clusters_dsmem/any_shape/launch.cuh",
                          "06_clusters_dsmem/any_shape/plan.cpp"))
        self.assertEqual(program_roots("06_any_shape", ()), ("06_clusters_dsmem/any_shape/lesson.cu",))
        self.assertEqual(program_roots("05_cube", ()), ("05_ws_double_buffer/variants/cube.cu",))

    def test_a_change_of_a_kernel_makes_its_records_stale(self):
        then = BY_NAME["slots"].fingerprint(edited("03_double_buffer/gemm.cuh"), stale.RESULTS)
        head = {"record": "slots", "date": "2026-11-25", "fingerprint": then}
        self.assertTrue(stale.is_stale(head))
        self.assertEqual(stale.dated(head), "2026-11-25, of an earlier kernel")
        self.assertEqual(stale.dated({**head, "fingerprint": stale.todays_fingerprint("slots")}), "2026-11-25")
        self.assertEqual(stale.dated({"date": "2026-11-25"}), "2026-11-25")  # none of the records

    def test_a_line_below_a_table_says_what_was_not_verified(self):
        def line(*verified):
            return stale.where({"gpu": "G", "date": "today", "commit": "abc", "runs": [{"verified": one} for one in verified]})
        self.assertEqual(line(True, True), "G, today, commit `abc`")
        self.assertEqual(line(True, None), "G, today, commit `abc`; not all results are verified")
        self.assertEqual(line(None, False), "G, today, commit `abc`; no result is verified")

    def test_a_change_of_a_core_makes_stale_what_runs_it_and_nothing_else(self):
        for path, counts, does_not in (
                ("common/device/mma_sync_core.cuh", ("cores", "tests", "sanitizers", "lab_03", "profiles", "ablate_02"),
                 ("ring", "ablate_05", "slots", "levels", "chunk", "default_streams", "timeline_03_double_buffer-slots_3")),
                ("04_warp_specialized/variants/roles_without_wgmma.cuh", ("roles_without_wgmma", "tests", "lab_04"), ("ring", "levels", "lab_06")),
                ("common/device/wgmma_core.cuh", ("cores", "ring", "ablate_05", "slots", "levels", "climb"), ("coalescing",))):
            tree = edited(path)
            for name in counts + does_not:
                with self.subTest(path, record=name):
                    stayed = BY_NAME[name].fingerprint(tree, stale.RESULTS) == stale.todays_fingerprint(name)
                    self.assertEqual(stayed, name in does_not)

    def test_a_timeline_of_the_cpu_device_is_decided_by_what_changes_virtual_time(self):
        for path, stays in (("observe/clock.cpp", False), ("kernel/engine_scheduler.cpp", False), ("kernel/memory/engine_tma.cpp", False),
                            ("instrumentation/hooks.cpp", False), ("observe/races.cpp", True), ("kernel/deadlock/cause.cpp", True),
                            ("api/memory_copies.cpp", True), ("tests/kernel_test.hpp", True), ("tests/observe/test_clock.cpp", True)):
            with self.subTest(path):
                then = BY_NAME["timeline_03_double_buffer-cpu_device"].fingerprint(edited(f"common/cpu_device/{path}"), stale.RESULTS)
                self.assertEqual(then == stale.todays_fingerprint("timeline_03_double_buffer-cpu_device"), stays)

    def test_what_maps_knobs_to_kernels_counts_by_what_it_includes(self):
        path = "05_ws_double_buffer/lesson.cu"
        for more, stays in (("int x;", True), ('\n#include "05_ws_double_buffer/variants/in_flight.cuh"\n', False)):
            then = BY_NAME["ring"].fingerprint(edited(path, more), stale.RESULTS)
            self.assertEqual(then == stale.todays_fingerprint("ring"), stays, more)

    def test_what_has_changed_names_no_core_that_was_not_run(self):
        path = "common/device/fma_core.cuh"
        with mock.patch.object(stale, "tree_of", lambda commit: edited(path)):
            said = {name: stale.what_changed(stale.State(BY_NAME[name], head={"commit": "0123456789ab"}))
                    for name in ("cores", "slots")}
        self.assertEqual(said, {"cores": path, "slots": "no source; the record has no fingerprint"})

    def test_every_core_that_is_left_out_is_there(self):
        for path in {path for one in RECORDS for path in one.not_run}:  # one that was renamed would count again
            with self.subTest(path):
                self.assertTrue(stale.HERE.matching(path))

    def test_a_record_ran_no_core_that_it_leaves_out(self):
        for one in RECORDS:
            path = one.newest(stale.RESULTS)
            if path is None or not sources(stale.HERE, one.roots).keys() & set(one.not_run):
                continue
            runs = json.loads(path.read_text(encoding="utf-8")).get("runs", ())  # a timeline has none
            with self.subTest(one.name):
                self.assertLessEqual({run["core"] for run in runs if "core" in run}, {"wgmma", "cublas"})


if __name__ == "__main__":
    unittest.main()
