#!/usr/bin/env python3
"""Tests of the notebook docs/kernel_ladder.ipynb: `test_notebook.py CMAKE LADDER [CLASS]`.

The class Text reads it. The class Cells runs its cells on the CPU device, in a clone of the working tree. CMAKE is the program
`cmake`, and LADDER the program `ladder` of this build: where the README's command would build it once more, it is only run.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = json.loads((ROOT / "docs/kernel_ladder.ipynb").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def cells(kind):
    return ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == kind]


class Shell:
    """Runs cells as Jupyter does: Python, `%cd FOLDER`, and `!COMMAND` with {names} of Python, which may fail."""

    def __init__(self, folder, environment):
        self.folder, self.environment, self.names = folder, environment, {}

    def run(self, cell):
        """[(command, exit code, output)] of the cell."""
        commands, python = [], []
        for line in [*cell.splitlines(), ""]:
            if line.startswith(("!", "%")) or not line:
                exec("\n".join(python), self.names)  # pylint: disable=exec-used
                python = []
            if line.startswith("%cd "):
                self.folder = (self.folder / line.removeprefix("%cd ")).resolve(strict=True)
            elif line.startswith("!"):
                commands.append(self.command(line[1:]))
            elif line.startswith("%"):
                raise ValueError(f"{line}: Shell does not know this command")
            else:
                python.append(line)
        return commands

    def command(self, line):
        line = re.sub(r"{(\w+)}", lambda name: str(self.names[name[1]]), line)
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=1200, check=False)
        return line, done.returncode, done.stdout


def commit_of_working_tree(folder):
    """A repository in the folder, whose one commit holds what git does not ignore of the working tree."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True, timeout=600).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():  # not those deleted since the last commit
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    author = ["-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, timeout=600)


class Text(unittest.TestCase):
    def test_it_is_a_notebook_without_results_that_says_what_each_cell_does(self):
        self.assertEqual((NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]), (4, 4))
        kinds = [cell["cell_type"] for cell in NOTEBOOK["cells"]]
        self.assertEqual(set(kinds), {"markdown", "code"})
        for before, cell in zip(["code", *kinds], NOTEBOOK["cells"]):
            if cell["cell_type"] == "code":
                self.assertEqual(before, "markdown", cell["source"])
                self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))

    def test_it_climbs_by_the_readmes_first_command(self):
        first = re.search(r"^common/setup\.sh && .*$", README, re.MULTILINE)[0]
        self.assertIn("!" + first, cells("code"))

    def test_without_the_address_of_a_repository_it_says_so(self):
        with self.assertRaisesRegex(AssertionError, "REPOSITORY is empty"):
            Shell(ROOT, {}).run(cells("code")[0])

    def test_files_that_it_names_exist(self):
        named = re.findall(r"`([\w./]+\.(?:md|cuh))`", "\n".join(cells("markdown")))
        self.assertGreaterEqual(len(named), 3)
        for name in named:
            self.assertTrue((ROOT / name).is_file(), name)

    def test_what_it_says_of_a_t4_is_what_the_page_of_programs_says(self):
        page = (ROOT / "docs/using_the_programs.md").read_text(encoding="utf-8")
        self.assertIn("\n| Turing (sm_75) | yes | `fma` | - | - |\n", page)
        self.assertIn("| 01, 07 | 02, 03 | 04, 05 | 06 |\n", page)
        text = " ".join(cells("markdown")[0].split())
        self.assertIn("On Colab's T4 lessons 01, 02, 03 and 07 run on the GPU, 02 and 03 with CUDA cores; 04 to 06 need", text)


@unittest.skipUnless(shutil.which("git") and (ROOT / ".git").exists(), "needs git, and a clone of the repository")
class Cells(unittest.TestCase):
    def test_they_run_and_the_broken_kernel_alone_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("origin", "content", "programs"):
                (folder / name).mkdir()
            commit_of_working_tree(folder / "origin")
            cmake = folder / "programs/cmake"
            cmake.write_text(f"""#!/bin/sh
case "$*" in
'--workflow --preset ladder') '{CMAKE}' --preset default -DLADDER_DEVICE=cpu && exec '{LADDER}' ;;
*) exec '{CMAKE}' "$@" ;;
esac
""", encoding="utf-8")
            cmake.chmod(0o755)
            shell = Shell(folder / "content", dict(os.environ, PATH=f"{cmake.parent}:{os.environ['PATH']}"))
            get, *others = cells("code")
            commands = shell.run(get.replace('REPOSITORY = ""', f'REPOSITORY = "file://{folder}/origin"'))
            for cell in others:
                commands += shell.run(cell)
            changed = shell.command("git status --short")[2]

        broken = next(i for i, command in enumerate(commands) if command[0].startswith("build-cpu/bin/"))
        for i, (line, code, output) in enumerate(commands):
            self.assertEqual(code, 1 if i == broken else 0, f"{line}\n{output}")
        outputs = [output for _, _, output in commands]
        climb = next(output for line, _, output in commands if line.endswith("--preset ladder"))
        self.assertRegex(climb, r"(?m)^ *05\.1 .* yes")
        self.assertIn("+++ b/03_double_buffer/gemm.cuh", "\n".join(outputs))
        self.assertEqual(re.findall(r"^[-+] .*", outputs[broken - 2], re.MULTILINE)[1].split("//")[0].strip("+ "),
                         "pipe_lc.consumer_release(false);")
        for words in ("deadlock", "gemm.cuh:", "pipe_lc.empty[0]", "2 of 2 arrivals missing"):
            self.assertIn(words, outputs[broken])
        self.assertNotIn("deadlock", outputs[-1])
        self.assertRegex(outputs[-1], r"384x256x384 .* yes\n")
        self.assertEqual(changed, "")


if __name__ == "__main__":
    CMAKE, LADDER = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
