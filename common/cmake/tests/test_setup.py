#!/usr/bin/env python3
"""What setup.sh installs where there is a GPU, and what it refuses: with a made-up GPU, nvcc, compiler and apt-get.

The compiler finds every library but Boost. And Dockerfile and .devcontainer fit what they build from, as far as that shows without Docker.

    test_setup.py CMAKE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SETUP = ROOT / "common/setup.sh"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
CMAKE = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "cmake")
PROGRAMS = {"nvidia-smi": "echo 'Tesla T4, 7.5'",
            "nvcc": "echo 'release 12.8, V12.8'",
            "c++": 'case "$* $(cat)" in *boost*) exit 1 ;; esac',
            "apt-get": 'echo "apt-get $*"',
            "sudo": 'exec "$@"'}


def setup(*words, programs=None):
    """The exit code of setup.sh, its output and what it has apt-get install, which here installs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, body in {**PROGRAMS, **(programs or {})}.items():
            (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
        path = os.pathsep.join(filter(None, [str(folder), str(CMAKE.parent), os.environ["PATH"]]))
        environment = dict(os.environ, PATH=path, CXX=str(folder / "c++"), CUDACXX=str(folder / "nvcc"))
        done = subprocess.run([SETUP, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=600, check=False)
        installs = [line.split(" ") for line in done.stdout.splitlines() if line.startswith("apt-get") and " install " in line]
        return done.returncode, done.stdout, [word for line in installs for word in line[1:] if word.startswith("lib")]


class Setup(unittest.TestCase):
    def test_lessons_that_run_on_the_gpu_need_no_boost(self):
        code, output, installed = setup()
        self.assertEqual((code, installed), (0, []), output)
        self.assertEqual(output, "setup: everything needed is here\n"
                                 "setup: the lessons will run on the GPU (Tesla T4, CUDA 12.8)\n")

    def test_the_cpu_device_needs_it_there_too(self):
        code, output, installed = setup("cpu")
        self.assertEqual((code, installed), (0, ["libboost-context-dev"]), output)
        self.assertIn("setup: missing: boost_context\n", output)

    def test_a_compiler_that_stays_too_old_is_named_in_the_last_line(self):
        code, output, _ = setup(programs={"c++": 'case "$(cat)" in *"too old"*) exit 1 ;; esac'})
        self.assertEqual(code, 1)
        self.assertRegex(output.splitlines()[-1], r"^setup: \S*c\+\+ is too old: g\+\+ 12 or clang 14 is needed \(")

    def test_another_argument_is_refused_in_one_line(self):
        self.assertEqual(setup("gpu")[:2], (1, "setup: 'gpu': is not understood; it must be 'cpu', 'docs' or nothing\n"))


class Container(unittest.TestCase):
    def test_its_only_step_is_setup(self):
        self.assertEqual(re.findall(r"^RUN (.*)$", DOCKERFILE, re.MULTILINE), ["common/setup.sh"])

    def test_it_copies_what_setup_reads_and_no_more(self):
        copied = {source for source, _ in re.findall(r"^COPY (\S+) (\S+)$", DOCKERFILE, re.MULTILINE)}
        setup = (ROOT / "common/setup.sh").read_text(encoding="utf-8")
        self.assertEqual(copied, {"common/setup.sh", *re.findall(r'"\$repository/([^"]+)"', setup)})
        for path, folder in re.findall(r"^COPY (\S+) (\S+)$", DOCKERFILE, re.MULTILINE):
            self.assertTrue((ROOT / path).is_file(), path)
            self.assertEqual(str(pathlib.Path(path).parent) + "/", folder)

    def test_the_codespace_is_built_from_it(self):
        folder = ROOT / ".devcontainer"
        build = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))["build"]
        self.assertEqual((folder / build["dockerfile"]).resolve(), ROOT / "Dockerfile")
        self.assertEqual((folder / build["context"]).resolve(), ROOT)
        for argument in build["args"]:
            self.assertIn(f"\nARG {argument}=", DOCKERFILE)

    def test_the_codespace_climbs_by_the_readmes_first_command(self):
        container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual(container["postCreateCommand"], re.search(r"^common/setup\.sh && .*$", readme, re.MULTILINE)[0])


if __name__ == "__main__":
    unittest.main()
