#!/usr/bin/env python3
"""The planted mistakes of the lessons: what NN_name/broken/mistakes.patch says of each.

    mistakes.py show 02 NAME     prints the patch of a mistake: `| git apply` plants it
    mistakes.py take 02 NAME     what `git diff` says becomes the patch of this mistake, which may be a new one

A mistake has a line `## name`, then these lines, then a unified diff, whose paths start at the root of the repository:

    Mistake: one sentence: what was done
    Kind: handshake (an order that nothing keeps), memory (a place that is not there, or was never written) or
          performance (right, but slow)
    Run: arguments of the program with which it shows; also those with which the right kernel must raise no alarm
    Notice: the detector that should notice it, or nothing
    Says: words that must be in the CPU device's report (of a performance mistake: the counter that grows, or the remark of
          the compiler)
    Compiles: for the CPU device alone, if the GPU's compiler refuses it

Exit code 2: bad input, one line.
"""
import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "common/results"))
from fingerprint import MISTAKES, planted  # noqa: E402
from script import end_with, write_whole  # noqa: E402

ANY_SHAPE = "06_any_shape"
# {a folder below a lesson's: (its program, what the lab calls it)}
BELOW_LESSONS = {"any_shape": (ANY_SHAPE, "any"), "attention": ("05_attention", "attention")}
CPU_DEVICE_ALONE = "for the CPU device alone"
KINDS = ("handshake", "memory", "performance")
DIFF = re.compile(r"^--- .*", re.MULTILINE | re.DOTALL)


class BadInput(Exception):
    """What is wrong, in one line."""


def number_of(lesson):
    """What programs and tests call a lesson: "05"; the kernels for any shape, which lesson 06 leads to, "any"; and "attention"."""
    return dict(BELOW_LESSONS.values()).get(lesson, lesson[:2])


def lesson_of(folder):
    """The name of the lesson in a folder."""
    return BELOW_LESSONS[folder.name][0] if folder.name in BELOW_LESSONS else folder.name


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One patch."""
    lesson: str  # "05_ws_double_buffer"
    name: str    # "wrong_parity"
    mistake: str
    kind: str
    run: tuple   # arguments
    notice: str
    says: str
    cpu_device_alone: bool = False
    file: pathlib.Path = dataclasses.field(default=None, compare=False)  # where it is planted, in this line
    line: int = dataclasses.field(default=0, compare=False)
    diff: str = dataclasses.field(default="", compare=False)

    @property
    def number(self):
        return number_of(self.lesson)

    @property
    def program(self):
        return f"broken_{self.number}_{self.name}"


def read_file(path, lesson):
    """The mistakes of a file. @throws BadInput if one lacks a line"""
    return [read_mistake(path, lesson, name, *found) for name, found in planted(path.read_text(encoding="utf-8")).items()]


def read_mistake(path, lesson, name, line, text):
    diff, place = DIFF.search(text), f"{path}:{line}: {name}"
    if not diff:
        raise BadInput(f"{place}: has no diff")
    lines = dict(re.findall(r"^(\w+):(?: (.*))?$", text[:diff.start()], re.MULTILINE))
    missing = [key for key in ("Mistake", "Kind", "Run", "Notice") if key not in lines]
    if missing:
        raise BadInput(f"{place}: has no line '{missing[0]}: ...'")
    if lines["Kind"] not in KINDS:
        raise BadInput(f"{place}: Kind: {lines['Kind']}: must be {', '.join(KINDS)}")
    return Mistake(lesson, name, lines["Mistake"], lines["Kind"], tuple(lines["Run"].split()), lines["Notice"],
                   lines.get("Says", ""), lines.get("Compiles") == CPU_DEVICE_ALONE, path, line, diff[0].rstrip("\n") + "\n")


def files():
    """{a lesson: its file of mistakes}, in the order of the ladder."""
    paths = [*ROOT.glob(f"[0-9][0-9]_*/broken/{MISTAKES}"), *(path for below in BELOW_LESSONS for path in ROOT.glob(f"[0-9][0-9]_*/{below}/broken/{MISTAKES}"))]
    found = {lesson_of(path.parent.parent): path for path in paths}
    return {lesson: found[lesson] for lesson in sorted(found, key=lambda lesson: lesson.replace("_a", "_z"))}


def read_mistakes(numbers=(), folder=None):
    """All mistakes in the order of the ladder; of these lessons only, if there are any.

    @param folder where NN_name/mistakes.patch are looked for, instead of NN_name/broken in the repository
    """
    found = {path.parent.name: path for path in sorted(pathlib.Path(folder).glob(f"[0-9][0-9]_*/{MISTAKES}"))} if folder else files()
    known = {number_of(lesson): (path, lesson) for lesson, path in found.items()}
    for number in numbers:
        if number not in known:
            raise BadInput(f"--lessons {number}: no mistakes for it; there are some for {', '.join(sorted(known))}")
    return [mistake for number, place in known.items() if not numbers or number in numbers for mistake in read_file(*place)]


def take(path, name, diff):
    """The text of a file with this diff as that of the mistake, which has a place in the order of names."""
    text = path.read_text(encoding="utf-8")
    told = {one: below for one, (_, below) in planted(text).items()}
    head = DIFF.sub("", told[name]) if name in told else "Mistake:\nKind:\nRun:\nNotice:\nSays:\n\n"
    told[name] = head + "".join(re.findall(r"^(?!diff |index ).*\n", diff, re.MULTILINE))
    return text.partition("\n## ")[0] + "".join("\n## {}\n{}\n".format(one, told[one].rstrip("\n")) for one in sorted(told))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("show", "take"))
    parser.add_argument("lesson", choices=[number_of(lesson) for lesson in files()])
    parser.add_argument("name")
    arguments = parser.parse_args()
    path = {number_of(lesson): path for lesson, path in files().items()}[arguments.lesson]
    if arguments.what == "show":
        found = planted(path.read_text(encoding="utf-8"))
        if arguments.name not in found:
            raise BadInput(f"{arguments.name}: no such mistake; there are {', '.join(found)}")
        print(found[arguments.name][1], end="")
        return 0
    if not re.fullmatch(r"[a-z]\w*", arguments.name):
        raise BadInput(f"{arguments.name}: a name is of letters, digits and _")
    diff = subprocess.run(["git", "-C", str(ROOT), "diff", "--no-ext-diff", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "HEAD",
                           "--", ".", f":(exclude,glob)**/{MISTAKES}"], capture_output=True, text=True, check=True).stdout
    if not diff:
        raise BadInput(f"take {arguments.lesson} {arguments.name}: nothing has changed since the last commit")
    text = take(path, arguments.name, diff)
    write_whole(path, text)
    print(f"{path.relative_to(ROOT)}:{planted(text)[arguments.name][0]}: {arguments.name}; restore the lesson, and see that what is said "
          "of the mistake is true")
    return 0


if __name__ == "__main__":
    end_with(main, BadInput)
