#!/usr/bin/env python3
"""Tests of check_sources.py: `python3 common/cmake/tests/test_check_sources.py`."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "check_sources.py"


class Checked(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.entries = []
        # A compiler that says what it is asked, and finds fault with what is called wrong.
        self.compiler = self.build / "compiler"
        self.compiler.write_text('#!/bin/sh\necho "$*"\ncase "$*" in *wrong*) exit 1; esac\n', encoding="utf-8")
        self.compiler.chmod(0o755)

    def source(self, name, target, *definitions, text=""):
        (self.build / name).parent.mkdir(parents=True, exist_ok=True)
        (self.build / name).write_text(text, encoding="utf-8")
        words = " ".join([str(self.compiler), *definitions, "-o", f"{target}/{name}.o", "-c", name])
        self.entries.append({"directory": str(self.build), "file": name, "command": words})

    def check(self):
        """Exit code and lines."""
        (self.build / "compile_commands.json").write_text(json.dumps(self.entries), encoding="utf-8")
        ran = subprocess.run([sys.executable, SCRIPT, self.build], stdout=subprocess.PIPE, text=True, check=False)
        return ran.returncode, ran.stdout.splitlines()

    def test_a_source_is_checked_once_for_the_same_definitions_and_makes_no_object(self):
        self.source("a.cpp", "one", "-DX=1")
        self.source("a.cpp", "two", "-DX=1")
        self.source("a.cpp", "three", "-DX=2")
        self.assertEqual(self.check(), (0, ["-DX=1 -c a.cpp -fsyntax-only", "-DX=2 -c a.cpp -fsyntax-only",
                                            "2 sources checked, 0 of them wrong"]))

    def test_sources_that_are_compiled_together_are_checked_once_too(self):
        self.source("one/Unity/unity_0.cxx", "one", text='#include "a.cpp"')
        self.source("two/Unity/unity_0.cxx", "two", text='#include "a.cpp"')
        self.source("three/Unity/unity_0.cxx", "three", text='#include "b.cpp"')
        self.assertEqual(self.check()[1], ["-c two/Unity/unity_0.cxx -fsyntax-only", "-c three/Unity/unity_0.cxx -fsyntax-only",
                                           "2 sources checked, 0 of them wrong"])

    def test_what_was_built_for_any_target_is_left_out(self):
        self.source("a.cpp", "one")
        self.source("a.cpp", "two")
        (self.build / "one").mkdir()
        (self.build / "one" / "a.cpp.o").touch()
        self.assertEqual(self.check(), (0, ["0 sources checked, 0 of them wrong"]))

    def test_a_source_that_is_wrong_fails_and_the_others_are_checked_all_the_same(self):
        self.source("wrong.cpp", "one")
        self.source("b.cpp", "one")
        self.assertEqual(self.check(), (1, ["-c wrong.cpp -fsyntax-only", "-c b.cpp -fsyntax-only",
                                            "2 sources checked, 1 of them wrong"]))

    def test_neither_a_learners_file_nor_a_copy_of_the_labs_need_be_there(self):
        self.source("copy.cpp", "one")
        (self.build / "copy.cpp").unlink()
        for name, definition in (("mine", f'"{self.build}/mine.cuh"'), ("there", f'"{self.compiler}"')):
            self.source(f"{name}.cu", "one", rf"'-DEXERCISE={definition}'")
        code, lines = self.check()
        self.assertEqual((code, len(lines)), (0, 2))
        self.assertIn("-c there.cu", lines[0])


if __name__ == "__main__":
    unittest.main()
