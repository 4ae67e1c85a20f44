#!/usr/bin/env python3
"""What does a compiler say of the sources that were not built? Checks them without compiling them, which is quicker.

    check_sources.py BUILD    all sources of BUILD/compile_commands.json whose objects are not there

A source that several targets compile with the same definitions is checked once. What is not there is not missed: a
learner's file, or a copy that the lab makes. Exit code 1, and what the compiler says, if it finds something wrong.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


def identity(source):
    """What two targets have in common that compile the same: its path, or the paths in a source that CMake wrote to
    compile several together."""
    return source.read_text(encoding="utf-8") if source.parent.name == "Unity" else str(source)


def checks(build):
    """A command, as words, for each source that is left."""
    found, built = {}, set()
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        definitions = tuple(word for word in words if word.startswith("-D"))
        needs = [entry["file"], *re.findall(r'EXERCISE="([^"]*)"', " ".join(definitions))]
        if not all((build / file).exists() for file in needs):
            continue
        key = (identity(build / entry["file"]), definitions)
        at = words.index("-o")
        if (build / words[at + 1]).exists():
            built.add(key)
        found[key] = [*words[:at], *words[at + 2:], "-fsyntax-only"]
    return [command for key, command in found.items() if key not in built]


def main():
    build = pathlib.Path(sys.argv[1])
    commands = checks(build)
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for ran in pool.map(lambda command: subprocess.run(command, cwd=build, stdout=subprocess.PIPE,
                                                           stderr=subprocess.STDOUT, text=True, check=False), commands):
            print(ran.stdout, end="")
            wrong += ran.returncode != 0
    print(f"{len(commands)} sources checked, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
