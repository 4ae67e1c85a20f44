#!/usr/bin/env python3
"""Tests of the lab's own tools: `python3 common/lab/test_lab.py`."""
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import detectors  # noqa: E402
import matrix  # noqa: E402
import mistakes  # noqa: E402
import mutate  # noqa: E402
from detectors import BROKEN, CAUGHT, HANG, MISSED, Finding, Programs  # noqa: E402
from mistakes import BadInput, Mistake  # noqa: E402

DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-## no heading\n+wait();\n"
HEAD = "Mistake: Nobody waits.\nKind: handshake\nRun: --shape 8x8x8\nNotice: races\nSays: full[0]\n"
PATCH = f"Mistakes.\n\n## no_wait\n{HEAD}\n{DIFF}"
MISTAKE = Mistake("05_x", "no_wait", "Nobody waits.", "handshake", ("--shape", "8x8x8"), "races", "full[0]")


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def read(self, text):
        """What a file with this text says."""
        self.file = self.folder / "mistakes.patch"
        self.file.write_text(text, encoding="utf-8")
        return mistakes.read_file(self.file, "05_x")


class Patches(WithFolder):
    def test_a_mistake_says_what_it_is_and_where_it_stands(self):
        two = PATCH + f"\n## second\n{HEAD}\n{DIFF}\n"
        self.assertEqual(self.read(two), [MISTAKE, dataclasses.replace(MISTAKE, name="second")])
        for mistake in self.read(two):
            self.assertEqual(two.splitlines()[mistake.line - 1], f"## {mistake.name}")
            self.assertEqual((mistake.diff, mistake.file), (DIFF, self.file))

    def test_a_mistake_that_the_compiler_of_a_gpu_refuses_is_for_the_cpu_device_alone(self):
        refused = PATCH.replace("Notice: races\n", "Notice: races\nCompiles: for the CPU device alone\n")
        self.assertTrue(self.read(refused)[0].cpu_device_alone)
        self.assertFalse(self.read(PATCH)[0].cpu_device_alone)

    def test_a_missing_line_an_unknown_kind_and_no_diff_are_refused_with_the_place(self):
        for text, words in ((PATCH.replace("Notice: races\n", ""), "no line 'Notice: "),
                            (PATCH.replace("handshake", "rare"), "Kind: rare: must be"), (PATCH.replace("--- a", "-- a"), "no diff")):
            with self.assertRaisesRegex(BadInput, rf"mistakes.patch:3: no_wait: .*{words}"):
                self.read(text)

    def test_a_diff_is_taken_without_what_git_says_of_itself_and_the_rest_of_the_file_stays(self):
        self.read(PATCH)
        new = DIFF.replace("wait()", "wait(0)")
        self.assertEqual(mistakes.take(self.file, "no_wait", f"diff --git a/x b/x\nindex 1..2 100644\n{new}"), PATCH.replace(DIFF, new))
        with_another = mistakes.take(self.file, "a_new_one", new)
        self.assertEqual(with_another.replace(f"\n## a_new_one\nMistake:\nKind:\nRun:\nNotice:\nSays:\n\n{new}", ""), PATCH)
        with self.assertRaisesRegex(BadInput, "a_new_one: Kind: : must be handshake"):
            self.read(with_another)

    def test_the_planted_mistakes_fit_the_tree_and_each_file_is_a_patch(self):
        here = {**os.environ, "GIT_CEILING_DIRECTORIES": str(mistakes.ROOT.parent)}  # perhaps below another repository
        def refusal(text, *how):
            return subprocess.run(["git", "apply", *how], input=text, cwd=mistakes.ROOT, env=here, capture_output=True, text=True).stderr
        planted = mistakes.read_mistakes()
        self.assertEqual([mistake.program for mistake in planted if refusal(mistake.diff, "--check")], [])
        for path in mistakes.files().values():
            text = path.read_text(encoding="utf-8")
            self.assertEqual(refusal(text, "--numstat"), "")
            names = re.findall("^## (.*)", text, re.MULTILINE)
            self.assertEqual(names, [mistake.name for mistake in planted if mistake.file == path])
            self.assertEqual(names, sorted(set(names)))

    def test_the_planted_mistakes_cover_each_lesson_with_copies_and_say_what_the_report_must_say(self):
        planted = mistakes.read_mistakes()
        self.assertGreaterEqual({mistake.number for mistake in planted}, {"02", "03", "04", "05", "06", "07"})
        for mistake in planted:
            with self.subTest(mistake.program):
                self.assertTrue(mistake.mistake.endswith("."))
                self.assertTrue({"--shape", "--length"} & set(mistake.run))
                if mistake.kind != "performance":
                    self.assertIn(mistake.notice, detectors.CPU_DETECTORS)
                    self.assertTrue(mistake.says)


class Runs(WithFolder):
    def test_a_failure_is_caught_and_its_first_lines_are_kept(self):
        path = self.program("p", "echo \"05_x: error: kernel '05_x': deadlock\n  at full[0]\" >&2; exit 1")
        finding = detectors.judged(detectors.run([str(path)], 10))
        self.assertEqual((finding.outcome, finding.message), (CAUGHT, "deadlock at full[0]"))

    def test_the_report_is_kept_line_by_line_if_wanted_and_from_a_file_again(self):
        words = "x: error: deadlock\n  at full[0]\n    2 of 4"
        ran = detectors.Ran(1, f"table\n{words}\nx: error: another\n", 0, False)
        kept = detectors.judged(ran).as_json(whole=True)
        self.assertEqual(kept["report"], words)
        self.assertEqual(detectors.Finding(CAUGHT, "", 0, kept["report"]).as_json(whole=True)["report"], words)
        self.assertNotIn("report", detectors.judged(ran).as_json())
        self.assertNotIn("report", detectors.judged(detectors.Ran(0, "fine", 0, False)).as_json(whole=True))

    def test_a_report_holds_the_warning_before_the_error_and_the_first_error_of_each_who_speaks(self):
        words = "a: warning: never recorded\nlate: 07_x: error: is nan\nb: error: a wait is missing\n  upload"
        self.assertEqual(detectors.report_of(f"table\n{words}\nearly: 07_x: error: is nan\nb: error: again\n"), words)
        self.assertEqual(detectors.report_of("a: warning: never recorded\nfine\n"), "")

    def test_paths_of_the_machine_are_not_kept(self):
        path = self.program("p", f"echo 'x: error: failed ({mistakes.ROOT}/common/host/a.cpp:5)'; exit 1")
        self.assertEqual(detectors.judged(detectors.run([str(path)], 10)).message, "failed (common/host/a.cpp:5)")

    def test_success_is_missed_and_bad_input_is_an_error(self):
        self.assertEqual(detectors.judged(detectors.run([str(self.program("p", "exit 0"))], 10)).outcome, MISSED)
        with self.assertRaisesRegex(BadInput, "no such shape"):
            detectors.judged(detectors.run([str(self.program("q", "echo 'q: error: no such shape'; exit 2"))], 10))

    def test_a_program_that_hangs_is_killed(self):
        begun = self.folder / "begun"
        calls = iter(range(1 << 30))  # the first begins its time, which is over when it has said so
        with unittest.mock.patch.object(detectors.time, "monotonic", lambda: 100.0 * (next(calls) > 0 and begun.exists())):
            ran = detectors.run([str(self.program("p", f"echo begun; touch {begun}; sleep 3600"))], 2)
        self.assertEqual((detectors.judged(ran).outcome, ran.output), (HANG, "begun\n"))

    def test_a_program_that_was_not_built_is_named(self):
        with self.assertRaisesRegex(BadInput, "not built"):
            detectors.run([str(self.folder / "none")], 1)


class Gpu(WithFolder):
    """What the GPU's detectors make of words like those of the tools."""

    def detect(self, name, script):
        self.program(MISTAKE.program, script)
        programs = Programs(self.folder, self.folder, str(self.folder / "tool"))
        return detectors.GPU_DETECTORS[name](programs, MISTAKE)

    def test_a_tool_has_caught_what_it_counts(self):
        for count, outcome in ((0, MISSED), (3, CAUGHT)):
            self.program("tool", f"echo '========= Race reported'; echo '========= RACECHECK SUMMARY: {count} hazards'")
            self.assertEqual(self.detect("racecheck", "true").outcome, outcome)
        self.assertIn("3 errors: Race reported", self.detect("racecheck", "true").message)

    def test_a_tool_that_fails_is_broken_and_has_caught_nothing(self):
        error = "========= Internal Sanitizer Error: it lacks memory"
        summary = "========= ERROR SUMMARY: 2 errors"
        for script, words in ((f"echo '{error}'; echo '{summary}'", "the tool failed: Internal Sanitizer Error: it lacks memory"),
                              (f"echo 'CUDA error: out of memory'; echo '{summary}'", "the tool failed: CUDA error: out of"),
                              ("echo 'no device'", "the tool failed: no summary: no device"),
                              (f"echo '{summary}'; kill -SEGV $$", "the tool failed: ended by signal 11")):
            with self.subTest(script):
                self.program("tool", f"echo $3 >> {self.folder}/tries; {script}")
                finding = self.detect("initcheck", "true")
                self.assertEqual(finding.outcome, BROKEN)
                self.assertTrue(finding.message.startswith(words), finding.message)
        self.assertEqual((self.folder / "tries").read_text(encoding="utf-8").count("\n"), 4 * detectors.TOOL_TRIES)

    def test_a_program_that_fails_under_a_tool_does_not_break_it(self):
        ends = "echo \"========= Error: process didn't terminate successfully\"; echo '========= Target application returned an error'"
        for reported, count, outcome in (("echo '========= Invalid __shared__ write of size 4 bytes'; ", 7, CAUGHT),
                                         ("", 1, MISSED), ("", 0, MISSED)):
            self.program("tool", f"{reported}{ends}; echo '========= ERROR SUMMARY: {count} errors'; exit 1")
            finding = self.detect("memcheck", "true")
            self.assertEqual(finding.outcome, outcome)
            self.assertEqual("Invalid __shared__ write" in finding.message, outcome == CAUGHT)

    def test_what_a_tool_reports_of_a_program_that_hangs_is_kept(self):
        for said, outcome, words in (("========= Missing wait.", CAUGHT, "before it hangs: Missing wait."),
                                     ("========= COMPUTE-SANITIZER", HANG, ""),
                                     ("========= Internal Sanitizer Error", HANG, "")):
            with unittest.mock.patch.object(detectors, "run", return_value=detectors.Ran(-9, said, 0.1, True)):
                finding = self.detect("synccheck", "true")
            self.assertEqual((finding.outcome, finding.message), (outcome, words))

    def test_a_tool_is_given_less_time_for_a_program_that_hangs_by_itself(self):
        given = []
        def note(programs, _):
            given.append(programs.tool_limit_s or detectors.TOOL_LIMIT_S)
            return Finding(MISSED)
        with unittest.mock.patch.dict(detectors.GPU_DETECTORS, memcheck=note):
            for outcome in (MISSED, HANG):
                detectors.findings_for(MISTAKE, Programs(self.folder, None, ""), "gpu", ["memcheck"],
                                       {"result": Finding(outcome)})
        self.assertEqual(given, [detectors.TOOL_LIMIT_S, detectors.HUNG_TOOL_LIMIT_S])

    def test_a_tool_that_fails_once_is_asked_again(self):
        once = f"[ -e {self.folder}/tried ] || {{ touch {self.folder}/tried; echo 'Internal Sanitizer Error'; }}"
        self.program("tool", f"{once}; echo '========= ERROR SUMMARY: 0 errors'")
        self.assertEqual(self.detect("memcheck", "true").outcome, MISSED)

    def test_wrong_results_are_counted(self):
        line = "echo '05_x: error: wrong result of 05_x (defaults): row 0'"
        finding = self.detect("result", f"{line}; {line}; exit 1")
        self.assertTrue(finding.message.startswith("2 of 6 results: wrong result"))

    def test_a_program_that_only_began_late_has_not_hung(self):
        # How much processor time it had is given here, since a busy machine gives as little as it likes.
        killed = detectors.Ran(-9, "", 0.1, True)
        for first, expected in ((killed, (MISSED, 2)),
                                (dataclasses.replace(killed, seconds=detectors.GPU_LIMIT_S - 1), (HANG, 1))):
            with unittest.mock.patch.object(detectors, "run", side_effect=[first, detectors.Ran(0, "", 1, False)]) as run:
                finding = self.detect("result", "true")
            self.assertEqual((finding.outcome, run.call_count), expected)

    def test_a_wait_that_gave_up_is_told_from_a_wrong_result(self):
        waited = "echo '05_x: error: launch failed'; echo 'block 0, warp 8 waited 2 s for pipe_lc.empty[0], phase of parity 0'; exit 1"
        self.assertIn("warp 8 waited 2 s for pipe_lc.empty[0]", self.detect("bounded", waited).message)
        self.assertEqual(self.detect("bounded", "echo 'error: wrong result'; exit 1").outcome, MISSED)

    def test_lesson_07_is_given_options_that_it_has(self):
        streams = dataclasses.replace(MISTAKE, lesson="07_streams")
        self.assertIn("--sample-ms", detectors.briefly(MISTAKE))
        self.assertEqual(detectors.briefly(streams) + detectors.unverified(streams), ["--rounds", "1"])

    def test_the_compiler_remarks_and_spills(self):
        for words, outcome in (("ptxas info : 0 bytes stack frame, 0 bytes spill stores", MISSED),
                               ("ptxas info : 8 bytes stack frame, 8 bytes spill stores", CAUGHT),
                               ("ptxas info : (C7508) Potential Performance Loss: setmaxnreg ignored", CAUGHT)):
            (self.folder / f"{MISTAKE.program}.log").write_text(words, encoding="utf-8")
            self.assertEqual(self.detect("compiler", "true").outcome, outcome)


class GpuMatrix(WithFolder):
    """The matrix of made-up lessons, whose programs and tools only say what they were asked."""

    def setUp(self):
        super().setUp()
        for lesson in ("04_w", "05_x"):
            self.lesson(lesson)
        self.program("tool", "echo '========= ERROR SUMMARY: 0 errors'")
        self.file = self.folder / "results" / "lab.json"

    def lesson(self, lesson):
        folder = self.folder / "patches" / lesson
        folder.mkdir(parents=True)
        (folder / "mistakes.patch").write_text(PATCH, encoding="utf-8")
        for name in (f"right_{lesson[:2]}", f"broken_{lesson[:2]}_no_wait"):
            self.program(name, f"echo {name} >> {self.folder}/ran")
            (self.folder / f"{name}.log").write_text("", encoding="utf-8")

    def matrix(self, *words):
        """Exit code and output."""
        command = ["matrix.py", "--device", "gpu", "--programs", str(self.folder), "--debug-programs", str(self.folder),
                   "--sanitizer", str(self.folder / "tool"), "--patches", str(self.folder / "patches"), "--json",
                   str(self.file), "--commit", "abc", *words]
        with unittest.mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(io.StringIO()) as out:
            return matrix.main(), out.getvalue()

    def rows(self):
        text = self.file.read_text(encoding="utf-8")
        results = json.loads(text)
        self.assertEqual(text, matrix.json_rows(results))
        return {matrix.key_of_row(row)[:2]: list(row["findings"]) for row in results["mistakes"] + results["right"]}

    def ran(self):
        path = self.folder / "ran"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def test_nothing_runs_beside_a_tool(self):
        lock = self.folder / "lock"
        self.program("tool", f"mkdir {lock} || echo beside; sleep 0.02; rmdir {lock}; echo '= ERROR SUMMARY: 0 errors'")
        self.program("broken_05_no_wait", f"[ ! -e {lock} ] || exit 1")
        code, _ = self.matrix("--lessons", "05")
        results = json.loads(self.file.read_text(encoding="utf-8"))
        findings = results["mistakes"][0]["findings"]
        self.assertEqual((code, {name: finding["outcome"] for name, finding in findings.items()}),
                         (0, dict.fromkeys(("result", *detectors.TOOLS, "bounded", "compiler"), MISSED)))

    def test_a_broken_tool_costs_its_own_cells_only(self):
        self.program("tool", "[ $2 = racecheck ] && echo 'Internal Sanitizer Error'; echo '========= Invalid write'; "
                             "echo '========= ERROR SUMMARY: 1 errors'")
        code, out = self.matrix("--lessons", "05")
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines()[-1].split()[-8:], [MISSED, CAUGHT, BROKEN, CAUGHT, CAUGHT, MISSED, MISSED, "-"])

    def test_a_second_call_goes_on_where_the_first_was_stopped(self):
        every = ["result", *detectors.TOOLS, "bounded", "compiler"]
        with unittest.mock.patch.object(matrix, "findings_for", side_effect=[{"result": Finding(MISSED)}, KeyboardInterrupt]):
            with self.assertRaises(KeyboardInterrupt):
                self.matrix()
        self.assertEqual(self.rows(), {("04_w", "no_wait"): ["result"]})
        self.assertEqual(self.ran(), [])

        code, out = self.matrix("--continue", "--lessons", "04")
        self.assertEqual(code, 0)
        most = 2 * sum(detectors.GPU_MOST_S[name] for name in every) - detectors.GPU_MOST_S["result"]
        self.assertIn(f"lesson 04: 2 programs, {2 * len(every) - 1} findings, at most {most} s", out)
        self.assertEqual(self.ran().count("broken_04_no_wait"), 1)  # with bounded waits; its result was known
        self.matrix("--continue", "--lessons", "05")
        ran = len(self.ran())
        code, out = self.matrix("--continue")
        self.assertEqual((code, len(self.ran())), (0, ran))
        self.assertEqual(self.rows(), {(lesson, name): every for lesson in ("04_w", "05_x") for name in ("", "no_wait")})

    def test_a_pipe_is_written_to_once_and_stays(self):
        self.file.parent.mkdir()
        os.mkfifo(self.file)
        reader = os.open(self.file, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertEqual(self.matrix()[0], 0)
        self.assertTrue(self.file.is_fifo())
        self.assertEqual(len(json.loads(os.read(reader, 60000))["mistakes"]), 2)

    def test_rows_of_another_commit_are_not_continued(self):
        self.matrix("--lessons", "04")
        with self.assertRaisesRegex(BadInput, "was recorded with commit abc, and this is abd"):
            self.matrix("--continue", "--commit", "abd")

    def test_a_budget_ends_before_what_might_not_fit_and_says_what_is_left(self):
        code, out = self.matrix("--lessons", "05", "--budget-s", str(detectors.GPU_MOST_S["result"] + 2))
        self.assertEqual(code, 1)
        self.assertIn(f"left after {detectors.GPU_MOST_S['result'] + 2} s: 05 no_wait, 05 right: --shape 8x8x8", out)
        self.assertEqual(self.rows(), {("05_x", name): ["result"] for name in ("", "no_wait")})
        code, _ = self.matrix("--continue", "--lessons", "05", "--budget-s", "600")
        self.assertEqual(code, 0)

    def test_detectors_can_be_chosen_and_one_that_broke_is_tried_again(self):
        self.program("tool", "echo 'Internal Sanitizer Error'")
        self.matrix("--lessons", "05", "--detectors", "result,racecheck")
        self.assertEqual(self.rows(), {("05_x", name): ["result", "racecheck"] for name in ("", "no_wait")})
        self.program("tool", "echo '========= ERROR SUMMARY: 0 errors'")
        _, out = self.matrix("--continue", "--lessons", "05", "--detectors", "result,racecheck")
        self.assertIn("lesson 05: 2 programs, 2 findings", out)
        self.assertEqual(out.splitlines()[-1].split()[-8:], [MISSED, "-", MISSED, *["-"] * 5])
        with self.assertRaisesRegex(BadInput, "--detectors magic: must be among result, memcheck"):
            self.matrix("--detectors", "magic")


class OnCpu(WithFolder):
    def test_only_the_plain_command_leaves_shape_and_schedule_to_the_program(self):
        log = self.folder / "log"
        self.program(MISTAKE.program, f'echo "$*" >> {log}')
        mistake = dataclasses.replace(MISTAKE, run=("--slots", "2", "--shape", "8x8x8"))
        for name in ("plain command", "result", "races"):
            self.assertEqual(detectors.CPU_DETECTORS[name](Programs(self.folder, None, ""), mistake).outcome, MISSED)
        self.assertEqual(log.read_text(encoding="utf-8").splitlines(),
                         ["--slots 2 --threads 1", "--slots 2 --shape 8x8x8 --threads 1 --schedule round-robin/late --only-asked",
                          "--slots 2 --shape 8x8x8 --threads 1 --schedule all --only-asked --check-races"])

    def test_the_plain_command_comes_first(self):
        self.assertEqual(detectors.detectors_for("handshake", "cpu")[0], "plain command")


class Seeds(WithFolder):
    def alarms(self, script):
        self.program("right_05", script)
        with unittest.mock.patch.object(matrix, "SEEDS_OF_PROCESS", 25):
            return matrix.alarms_of_seeds([MISTAKE], Programs(self.folder, None, ""), 60, 2)

    def test_each_seed_is_tried_once_by_few_programs(self):
        log = self.folder / "log"
        self.assertEqual(self.alarms(f'echo "$*" >> {log}'), ([], 60))
        self.assertEqual(sorted(line.split("--seed ")[1] for line in log.read_text(encoding="utf-8").splitlines()),
                         ["1-25", "26-50", "51-60"])

    def test_an_alarm_names_its_seed(self):
        alarms, _ = self.alarms('case "$*" in *"seed 26-50" | *"seed 28") echo "right_05: error: a race"; exit 1; esac')
        self.assertEqual(alarms, ["05 right: --shape 8x8x8 --seed 28: caught: a race"])

    def test_an_alarm_that_no_seed_raises_alone_is_one_all_the_same(self):
        alarms, _ = self.alarms('case "$*" in *"seed 1-25") echo "right_05: error: a race"; exit 1; esac')
        self.assertEqual(alarms, ["05 right: --shape 8x8x8 --seed 1-25: caught: a race"])


class Costs(WithFolder):
    def counters(self, right, broken):
        for name, row in (("right_05", right), (MISTAKE.program, broken)):
            results = json.dumps({"runs": [row]})
            self.program(name, f"for path; do :; done; echo '{results}' > \"$path\"")  # the last argument
        return detectors.counters(Programs(self.folder, None, ""), MISTAKE)

    def test_a_counter_that_grows_is_named(self):
        right = {name: 100 for name in detectors.COSTS if name != "virtual_us"} | {"overlap_cycles": 10}
        self.assertEqual(self.counters({"counters": right}, {"counters": right}).outcome, MISSED)
        self.assertEqual(self.counters({"counters": right}, {"counters": {**right, "cycles": 120}}).message,
                         "cycles 100 -> 120")
        self.assertEqual(self.counters({"counters": right}, {"counters": {**right, "overlap_cycles": 5}}).message,
                         "overlap_cycles 10 -> 5")

    def test_where_streams_are_timed_their_virtual_time_is_what_counts(self):
        self.assertEqual(self.counters({"time_us_median": 20.0}, {"time_us_median": 21.0}).outcome, MISSED)
        self.assertEqual(self.counters({"time_us_median": 20.0}, {"time_us_median": 29.6}).message, "virtual_us 20 -> 30")


class Bar(unittest.TestCase):
    def complaints(self, mistake, **findings):
        return list(matrix.complaints(mistake, findings))

    def test_the_report_must_come_from_the_detector_named_and_say_its_words(self):
        self.assertEqual(self.complaints(MISTAKE, races=Finding(CAUGHT, "", 1, "race at full[0]")), [])
        self.assertIn("does not say", self.complaints(MISTAKE, races=Finding(CAUGHT, "", 1, "race"))[0])
        self.assertIn("did not notice", self.complaints(MISTAKE, result=Finding(CAUGHT), races=Finding(MISSED))[0])

    def test_hangs_and_slow_detectors_are_complained_of(self):
        self.assertIn("hangs", self.complaints(MISTAKE, races=Finding(HANG))[0])
        self.assertIn("11.0 s", self.complaints(MISTAKE, races=Finding(CAUGHT, "", 11, "full[0]"))[0])

    def test_right_programs_and_slow_ones_must_raise_no_alarm_of_order(self):
        right = Mistake("05_x", "", "", "handshake", ("--shape", "8x8x8"), "", "")
        slow = Mistake("05_x", "slow", "Slow.", "performance", ("--shape", "8x8x8"), "timing", "")
        for mistake in (right, slow):
            self.assertEqual(self.complaints(mistake, races=Finding(MISSED, "", 11)), [])  # who raises none may be slow
            self.assertIn("false alarm", self.complaints(mistake, races=Finding(CAUGHT, "race"))[0])


class Statements(unittest.TestCase):
    def statements(self, text):
        return [text[begin:end] for _, begin, end in mutate.statements(text)]

    def test_calls_that_stand_alone_are_found(self):
        self.assertEqual(self.statements("void f() {\n  core.template finish<0>();  // wait();\n  if (x) pipe.consumer_release(a(1));"
                                         "\n  else\n    __syncthreads();\n  smem.pipe[i].advance(2); }"),
                         ["core.template finish<0>();", "pipe.consumer_release(a(1));", "__syncthreads();",
                          "smem.pipe[i].advance(2);"])

    def test_checked_calls_of_the_host_are_found(self):
        self.assertEqual(self.statements("if (last)\n  CUDA_CHECK(cudaStreamSynchronize(stream.get()));\nCUDA_CHECK(cudaFree(a));"),
                         ["CUDA_CHECK(cudaStreamSynchronize(stream.get()));"])

    def test_definitions_and_calls_that_give_a_value_are_not(self):
        self.assertEqual(self.statements("void consumer_wait() {}\nconst int slot = pipe.consumer_wait();\nunwait();"), [])


class Mutants(unittest.TestCase):
    def test_every_file_has_some_and_what_is_explained_is_one_of_them(self):
        there = set()
        for number, files in mutate.FILES.items():
            for file in files:
                names = [name for name, *_ in mutate.mutants_of(file)]
                self.assertTrue(names, file)
                there |= {f"{number}/{name}" for name in names}
        self.assertLessEqual(set(mutate.EXPLAINED), there)


if __name__ == "__main__":
    unittest.main()
