#!/usr/bin/env python3
"""Tests of `ladder tune` on the CPU device: `test_tune.py FOLDER CMAKE SOURCES`: the programs, cmake, this repository."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SHAPE, OTHER = "8x64x64", "8x128x64"
LESSON = "06_any_shape"


class Programs(unittest.TestCase):
    """Each test has a cache of its own, and no other of the user's folders."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name) / "cache"
        self.plans_file = self.cache / "kernel-ladder" / "plans.json"
        self.environment = {name: value for name, value in os.environ.items() if name not in ("LADDER_TUNED", "HOME")}
        self.environment["XDG_CACHE_HOME"] = str(self.cache)

    def ran(self, program, *words, expect=0, **environment):
        ran = subprocess.run([FOLDER / program, *words], env=self.environment | environment, capture_output=True, text=True,
                             timeout=600, check=False)
        self.assertEqual(ran.returncode, expect, ran.stderr)
        # On a busy machine a launch takes so long that the program says how far it is.
        ran.stderr = re.sub(r"(?m)^\S+ \S+: verifying, .*\n", "", ran.stderr)
        return ran

    def tune(self, *words, **options):
        return self.ran("ladder", "tune", *words, **options)

    def explained(self, *words, shape=SHAPE, **options):
        """The first line that explains the choice."""
        return self.ran(LESSON, "--explain", "--shape", shape, *words, **options).stdout.splitlines()[0]

    def plans(self):
        return json.loads(self.plans_file.read_text(encoding="utf-8"))["plans"]

    def write(self, plans):
        self.plans_file.write_text(json.dumps({"plans": plans}), encoding="utf-8")


class Remembers(Programs):
    tuned = None  # to measure every plan takes seconds, so that is done once

    def setUp(self):
        super().setUp()
        if not Remembers.tuned:
            Remembers.tuned = self.tune("--shape", SHAPE).stdout.replace(str(self.plans_file), "PATH"), self.plans()
        self.said = self.tuned[0].replace("PATH", str(self.plans_file))
        self.plans_file.parent.mkdir(parents=True, exist_ok=True)
        self.write(self.tuned[1])

    def rewritten(self, **changes):
        """The plan that was remembered, with other figures, in its place."""
        [plan] = self.plans()
        self.write([plan | changes])
        return plan

    def other_plan(self):
        """One that the model does not choose, by its name and by its settings."""
        model = self.explained("--no-tuned")
        name, tile = next((tile, tile) for tile in ("128x256", "64x128") if f": {tile}," not in model)
        return name, {"tile": tile, "cluster_m": "1", "cluster_n": "1", "cluster_k": "1"}

    def test_every_plan_is_in_the_table_and_the_fastest_is_named(self):
        lines = self.said.splitlines()
        self.assertLessEqual(max(map(len, lines)), 100)
        begin = next(i for i, line in enumerate(lines) if line.startswith("plan "))
        [end] = [i for i, line in enumerate(lines) if line.startswith(f"{SHAPE}: ")]
        rows, said = lines[begin + 2:end], lines[end]
        # As many as --explain lists below its two lines and the table's head.
        explained = self.ran(LESSON, "--explain", "--no-tuned", "--shape", SHAPE).stdout.splitlines()
        self.assertEqual(len(rows), len([line for line in explained[3:] if line]))
        self.assertTrue(rows[0].split("  ")[0].endswith(" (model)"), rows[0])
        self.assertTrue(all(row.split()[-1] == "yes" for row in rows), rows)
        cycles = [int(row.split()[-3]) for row in rows]
        fastest = rows[cycles.index(min(cycles))].split("  ")[0].removesuffix(" (model)")
        if min(cycles) < cycles[0]:
            self.assertEqual(said, f"{SHAPE}: {fastest} is {cycles[0] / min(cycles):.2f} times as fast as the model's choice.")
        self.assertEqual(lines[-1], f"Remembered in {self.plans_file}")
        self.assertTrue(self.explained().startswith(f"{SHAPE}: {fastest}, remembered from `ladder tune`"))

    def test_the_lesson_runs_the_remembered_plan_and_not_where_it_is_told_so(self):
        name, settings = self.other_plan()
        model = self.explained("--no-tuned")
        self.rewritten(settings=settings)
        self.assertEqual(self.explained(), f"{SHAPE}: {name}, remembered from `ladder tune`. Without that:")
        self.assertEqual(self.explained(LADDER_TUNED="no"), model)
        for words in ["--tile", "auto"], []:
            self.assertIn(f" {name}, tuned ", self.ran(LESSON, "--shape", SHAPE, *words).stdout.split("verified")[1])
        for words in ["--spare_sms", "8"], ["--cluster_m", "2"], ["--tile", "128x128"]:
            self.assertNotIn("remembered", self.explained(*words), words)
        self.assertNotIn("remembered", self.explained(shape=OTHER))
        # Refused before anything runs, also by what comes to lesson 06 late or needs no plan.
        for program, *words in [LESSON, "--explain"], ["ladder", "--size", "8"], ["ladder", "tune"], ["01_naive", "--size", "8"]:
            refused = self.ran(program, *words, expect=2, LADDER_TUNED="maybe")
            self.assertEqual(refused.stdout, "")
            name = "ladder tune" if "tune" in words else program
            self.assertEqual(refused.stderr, f"{name}: error: LADDER_TUNED=maybe: must be yes or no\n")

    def test_tuning_measures_against_the_model_and_not_against_what_it_remembers(self):
        _, settings = self.other_plan()
        remembered = self.rewritten(settings=settings)
        self.assertEqual(self.tune("--shape", SHAPE, "--plans", "all").stdout, self.said)
        self.assertEqual(self.plans(), [remembered])

    def test_the_plans_that_the_model_likes_best_can_be_timed_alone(self):
        lines = self.tune("--shape", SHAPE, "--no-verify", "--plans", "2").stdout.splitlines()
        begin = next(i for i, line in enumerate(lines) if line.startswith("plan "))
        rows = lines[begin + 2:next(i for i, line in enumerate(lines) if line.startswith(f"{SHAPE}: "))]
        explained = self.ran(LESSON, "--explain", "--no-tuned", "--shape", SHAPE).stdout.splitlines()[3:5]
        names = [re.split("  +", line)[0].removesuffix(" (model)") for line in rows]
        self.assertEqual(names, [re.split("  +", line)[0] for line in explained])

    def test_another_gpu_driver_or_build_has_its_own_plans(self):
        [mine] = self.plans()
        others = [mine | {key: "another"} for key in ("gpu", "driver", "build", "lesson")]
        self.write(others)
        self.assertNotIn("remembered", self.explained())
        self.tune("--shape", SHAPE)
        self.assertEqual(self.plans(), others + [mine])
        self.assertIn("remembered", self.explained())

    def test_ctrl_c_keeps_what_was_remembered_before(self):
        results = self.cache / "results.json"
        self.plans_file.unlink()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it, and so would its children
        with subprocess.Popen([FOLDER / "ladder", "tune", "--no-verify", "--shape", f"{SHAPE},2048x2048x2048", "--json", results],
                              env=self.environment, stdout=subprocess.DEVNULL) as tuning:
            try:
                end = time.monotonic() + 200
                while not results.exists() and tuning.poll() is None and time.monotonic() < end:
                    time.sleep(0.05)
                tuning.send_signal(signal.SIGINT)
                self.assertEqual(tuning.wait(60), -signal.SIGINT)
            finally:
                tuning.kill()
        self.assertEqual(self.plans(), self.tuned[1])
        self.assertEqual(os.listdir(self.plans_file.parent), [self.plans_file.name])
        self.assertEqual({run["m"] for run in json.loads(results.read_text(encoding="utf-8"))["runs"]}, {8})

    def test_a_plan_that_cannot_run_is_not_used(self):
        # The last one is of a time without `swap`, when there was no such tile.
        for settings in ({"tile": "128x256", "cluster_m": "1", "cluster_n": "1", "cluster_k": "4"}, {"tile": "1x1"}, {"nonsense": "auto"},
                         {"tile": "136x128"}):
            self.rewritten(settings=settings)
            ran = self.ran(LESSON, "--shape", SHAPE)
            self.assertEqual(ran.stderr, "")
            self.assertNotIn("remembered", self.explained(), settings)

    def test_what_is_forgotten_is_not_used(self):
        m, n, k = map(int, OTHER.split("x"))
        [plan] = self.plans()
        self.write([plan, plan | {"m": m, "n": n, "k": k}, plan | {"gpu": "another"}])
        self.assertEqual(self.tune("--forget", "--shape", f"{SHAPE},8x8x8").stdout, f"{self.plans_file}: forgot 1 plan\n")
        self.assertNotIn("remembered", self.explained())
        self.assertIn("remembered", self.explained(shape=OTHER))
        self.assertEqual(self.tune("--forget").stdout, f"{self.plans_file}: forgot 2 plans\n")
        self.assertNotIn("remembered", self.explained(shape=OTHER))
        self.assertEqual(self.tune("--forget").stdout, f"{self.plans_file}: forgot 0 plans\n")


class Trouble(Programs):
    def damage(self, text="{"):
        self.plans_file.parent.mkdir(parents=True, exist_ok=True)
        self.plans_file.write_text(text, encoding="utf-8")

    def test_a_damaged_file_is_one_warning_and_the_model_chooses(self):
        model = self.explained("--no-tuned")
        for text in "", "{", "[]", '{"plans": [{}]}', '{"plans": 1}', '{"plans": {}}', "\0\xff":
            self.damage(text)
            ran = self.ran(LESSON, "--shape", SHAPE, "--explain")
            self.assertEqual(ran.stdout.splitlines()[0], model)
            self.assertTrue(ran.stderr.startswith(f"warning: tuned plans '{self.plans_file}': damaged: "), ran.stderr)
            self.assertTrue(ran.stderr.endswith("; not used, `ladder tune --forget` removes it\n"), ran.stderr)
            self.assertEqual(ran.stderr.count("\n"), 1)
        # Once for all launches, and not where plans are not wanted.
        self.assertEqual(self.ran(LESSON, "--shape", SHAPE).stderr.count("\n"), 1)
        self.assertEqual(self.ran(LESSON, "--shape", SHAPE, "--no-tuned").stderr, "")

    def test_what_is_no_file_is_not_waited_for(self):
        self.plans_file.parent.mkdir(parents=True)
        os.mkfifo(self.plans_file)
        reason = f"tuned plans '{self.plans_file}': is no regular file"
        self.assertEqual(self.ran(LESSON, "--shape", SHAPE).stderr, f"warning: {reason}; not used\n")
        self.assertEqual(self.tune("--shape", OTHER, expect=1).stderr,
                         f"ladder tune: warning: {reason}; nothing will be remembered\nladder tune: error: {reason}\n")

    def test_tuning_keeps_a_damaged_file_beside_the_new_one_and_says_so(self):
        self.damage()
        ran = self.tune("--shape", OTHER)
        self.assertTrue(ran.stderr.startswith(f"ladder tune: warning: tuned plans '{self.plans_file}': damaged: "), ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1)
        self.assertTrue(ran.stderr.endswith(f"; it will become {self.plans_file}.damaged\n"), ran.stderr)
        self.assertEqual(len(self.plans()), 1)
        self.assertEqual(pathlib.Path(f"{self.plans_file}.damaged").read_text(encoding="utf-8"), "{")
        self.damage()
        self.assertIn("damaged", self.tune("--forget", "--shape", OTHER, expect=2).stderr)
        self.assertEqual(self.tune("--forget").stdout, f"{self.plans_file}: removed, it was damaged\n")
        self.assertFalse(self.plans_file.exists())

    def test_a_folder_that_cannot_be_made_is_said_before_the_table_and_after_it(self):
        self.cache.write_text("a file", encoding="utf-8")
        ran = self.tune("--shape", OTHER, expect=1)
        self.assertIn(f"{OTHER}: ", ran.stdout)
        self.assertNotIn("Remembered", ran.stdout)
        reason = f"tuned plans '{self.plans_file}': cannot make the folder {self.plans_file.parent}: Not a directory"
        self.assertEqual(ran.stderr, f"ladder tune: warning: {reason}; nothing will be remembered\nladder tune: error: {reason}\n")
        self.assertEqual(self.ran(LESSON, "--shape", OTHER).stderr, "")

    def test_without_a_home_there_is_nothing_to_read_and_nowhere_to_write(self):
        reason = "ladder tune: error: tuned plans: neither XDG_CACHE_HOME nor HOME names a folder\n"
        self.assertEqual(self.tune("--forget", expect=1, XDG_CACHE_HOME="").stderr, reason)
        self.assertEqual(self.ran(LESSON, "--shape", OTHER, XDG_CACHE_HOME="relative").stderr, "")
        home = self.cache.parent
        self.tune("--shape", OTHER, XDG_CACHE_HOME="", HOME=str(home))
        self.assertTrue((home / ".cache" / "kernel-ladder" / "plans.json").is_file())

    def test_what_cannot_be_tuned_is_refused_in_one_line(self):
        for words, begin in ((["--shape", "8x8x7"], f"{LESSON} cannot run 8x8x7: "), (["--schedule", "all"], "--schedule: "),
                             (["--forget", "--json", "x.json"], "--json x.json: "),
                             (["--plans", "0"], "--plans '0': must be a whole number from 1 to 1000, or all"),
                             (["--plans", "some"], "--plans 'some': "),
                             (["--a", __file__, "--b", __file__, "-o", "/dev/null"], f"--a {__file__}: ")):
            ran = self.tune(*words, expect=2)
            self.assertTrue(ran.stderr.startswith(f"ladder tune: error: {begin}"), ran.stderr)
            self.assertEqual(ran.stderr.count("\n"), 1)
        self.assertFalse(self.cache.exists())

    def test_tests_do_not_see_the_plans_of_whoever_runs_them(self):
        self.assertEqual(os.environ.get("LADDER_TUNED"), "no")


class KernelBuilds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path in "common/ptx/wgmma.cuh", "01_a/lesson.cu", "01_a/gemm.cuh", "02_b/lesson.cu", "02_b/any_shape/lesson.cu":
            self.change(path)

    def change(self, path):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        with open(self.root / path, "a", encoding="utf-8") as file:
            file.write("// changed\n")

    def builds(self, flags="-O2"):
        header = self.root / "builds.hpp"
        subprocess.run([CMAKE, f"-DSOURCE_DIR={self.root}", f"-DHEADER={header}", f"-DFLAGS={flags}", "-P",
                        SOURCES / "common/cmake/KernelBuilds.cmake"], timeout=600, check=True)
        lines = [line.split('"') for line in header.read_text(encoding="utf-8").splitlines() if '"' in line]
        return {words[1]: words[3] for words in lines}

    def test_a_build_is_known_by_its_kernels_and_flags(self):
        before = self.builds()
        self.assertEqual(list(before), ["01_a", "02_any_shape", "02_b"])
        self.assertEqual(self.builds(), before)
        self.assertNotEqual(self.builds("-O3"), before)
        for path in "01_a/README.md", "01_a/test_gemm.cu", "common/host/report.cpp":
            self.change(path)
            self.assertEqual(self.builds(), before, path)
        for path in "01_a/gemm.cuh", "01_a/lesson.cu", "01_a/new.cuh":
            self.change(path)
            after = self.builds()
            self.assertNotEqual(after["01_a"], before["01_a"], path)
            self.assertEqual(after["02_b"], before["02_b"], path)
            before = after
        self.change("02_b/any_shape/gemm.cuh")
        self.assertNotEqual(self.builds()["02_any_shape"], before["02_any_shape"])
        self.assertEqual(self.builds()["02_b"], before["02_b"])
        self.change("common/ptx/wgmma.cuh")
        self.assertNotEqual(self.builds()["02_b"], before["02_b"])


if __name__ == "__main__":
    FOLDER, CMAKE, SOURCES = (pathlib.Path(word).absolute() for word in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1])
