#!/usr/bin/env python3
"""Tests of `ladder check` on the CPU device: `test_check.py LADDER`, with the program."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER.parents[1] / "docs/your_own_kernel.md"
BEGIN = '#include "common/cuda/device_buffer.hpp"\n#include "common/cuda/launch.cuh"\n'
# What test_mistakes.cu is told to do, and what is said then.
MISTAKES = {
    "sync": "race in shared memory of block 0",
    "wait": "wrong parity",
    "arrive": "deadlock: warp 2 lane 0 waits at test_mistakes.cu:",
    "bytes": "4096 bytes more than expected",
    "beyond": "a store of 2 bytes reaches 2 bytes beyond the end of the buffer of 24576 bytes",
    "result": "not right on schedule round-robin/late: its exit code is 1",
    "exits": "not right on schedule round-robin/late: its exit code is 3",
    "nothing": "not right on schedule round-robin/late: it launches no kernel, so nothing was checked",
    "assertion": "Assertion `tiles == 1' failed.",
    "launches": "cudaLaunchKernelEx is called inside a kernel: on the CPU device only the host launches",
    "called": "a device operation was called outside of a kernel, at test_mistakes.cu:",
    "endless": "not right on schedule round-robin/late: it had not ended after 1 s;",
}
# Lines that no CPU device compiles, and what is said of each.
UNSUPPORTED = {
    "__global__ void shared(float* x) { __shared__ float s[32]; s[0] = x[0]; }": "keep a struct in ladder::shared_storage<>()",
    '__global__ void inline_ptx(int* x) { asm("mov.u32 %0, 1;" : "=r"(x[0])); }': "inline PTX runs on a GPU alone",
    "__global__ void texture(float*, cudaTextureObject_t t) {}": "it exists on a GPU, not on the CPU device",
    "__global__ void grid() { cooperative_groups::this_grid().sync(); }": "it exists on a GPU, not on the CPU device",
    "__global__ void coalesced() { cooperative_groups::coalesced_threads(); }": "it exists on a GPU, not on the CPU device",
    "__global__ void dependent() { cudaGridDependencySynchronize(); }": "it is called ptx::griddepcontrol_wait()",
    "void managed(float* x) { cudaMallocManaged(&x, 4); }": "it exists on a GPU, not on the CPU device",
    "int main() { dependent<<<1, 32>>>(); }": "is written ladder::launch(kernel, {",
}


class Check(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="a reader's ")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def check(self, *words, text=None):
        """The exit code and both outputs of a check of `words`, or of a file with this text."""
        if text is not None:
            (self.folder / "my_kernel.cu").write_text(text, encoding="utf-8")
            words = [self.folder / "my_kernel.cu", *words]
        ran = subprocess.run([LADDER, "check", *words], capture_output=True, text=True, timeout=120, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    def test_the_example_is_right_and_names_its_race_where_a_barrier_is_left_out(self):
        _, example, _ = self.check("--example")
        self.assertLessEqual(example.count("\n"), 50)
        timeline = self.folder / "timeline.json"
        code, said, _ = self.check("--schedule", "all", "--timeline", timeline, text=example)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"(?s)\nright: 1 launch on round-robin/late, .*highest-first/eager;\s+checked: ")
        self.assertEqual(json.loads(timeline.read_text(encoding="utf-8"))["metadata"]["unit"], "cycles")
        right = self.check(self.folder / "my_kernel.cu")
        race = self.check(text=example.replace("  __syncthreads();  //", "//"))
        self.assertEqual((right[0], race[0]), (0, 1))
        # The page shows both.
        reports = re.findall("(?ms)^```\n((?:my_kernel.cu: error|last launch).*?)^```", PAGE.read_text(encoding="utf-8"))
        self.assertEqual(len(reports), 2)
        for report, (_, said, _) in zip(reports, (race, right)):
            for line in report.splitlines():
                if line != "  ...":
                    self.assertIn(line + "\n", said)

    def test_mistakes_are_named_in_bounded_time(self):
        file = FOLDER / "test_mistakes.cu"
        code, said, _ = self.check(file, "--", "none")
        self.assertEqual(code, 0, said)
        for mistake, words in MISTAKES.items():
            with self.subTest(mistake=mistake):
                code, said, _ = self.check(file, "--limit", "1", "--", mistake)
                self.assertEqual(code, 1, said)
                self.assertIn(words, said)
                self.assertRegex(said, "\nnot right on schedule|^not right on schedule")

    def test_what_only_a_gpu_has_gets_one_line_each(self):
        text = BEGIN + "#include <cooperative_groups.h>\n" + "\n".join(UNSUPPORTED) + "\n"
        code, said, _ = self.check(text=text)
        self.assertEqual(code, 1, said)
        lines = said.splitlines()
        self.assertEqual(len(lines), len(UNSUPPORTED) + 1, said)
        for number, words in enumerate(UNSUPPORTED.values(), start=4):
            with self.subTest(line=number):
                self.assertRegex(said, rf"(?m)^my_kernel.cu:{number}: .*{words.replace('(', '[(]').replace(')', '[)]')}")

    def test_what_does_not_compile_is_said_in_a_few_lines(self):
        for text, words in {
            "#include <cub/cub.cuh>\n": "my_kernel.cu:1: the CPU device has no such header",
            "#include <cuda_fp16.h>\n": 'my_kernel.cu: "<cuda_fp16.h> exists on a GPU, not on the CPU device',
            BEGIN + "int main() { return missing; }\n": "my_kernel.cu:3: error: ",
            BEGIN: "my_kernel.cu: there is no main()",
        }.items():
            with self.subTest(text=text):
                code, said, _ = self.check(text=text)
                self.assertEqual((code, said.count("\n")), (1, 2), said)
                self.assertTrue(said.startswith(words), said)
                self.assertIn("\nnot right: it does not compile; ", said)

    def test_bad_input_is_one_line(self):
        for words, message in {
            ("nowhere.cu",): "'nowhere.cu': no such file",
            (): "name a file; ladder check --example > my_kernel.cu makes one",
            (FOLDER / "example.cu", "--limit", "0"): "--limit '0': ",
            (FOLDER / "example.cu", "--schedule", "never"): "--schedule 'never': ",
            (FOLDER / "example.cu", "--timeline", "/nonexistent/t.json"): "--timeline '/nonexistent/t.json'",
        }.items():
            with self.subTest(words=words):
                code, said, error = self.check(*words)
                self.assertEqual((code, said, error.count("\n")), (2, "", 1), error)
                self.assertIn(f"ladder check: error: {message}", error)


if __name__ == "__main__":
    LADDER = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
