#!/usr/bin/env python3
"""The steps of the climb: each is a kernel, and builds on one other by one idea.

    lattice.py [LESSON_FOLDER]    for each step (of that lesson) a line: the name of its diff, and the two kernels' paths

A lesson's steps are the rungs that its lesson.cu lists. The first builds on the last of the lesson that `.builds_on` names, each
other on the one before it. common/ladder/lattice.cpp has the same rule. Rungs of builds without wgmma are left out. Attention is no rung
of the climb, but has steps and diffs of its own.
"""
import dataclasses
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILDS_ON = re.compile(r"\.builds_on = \{([^}]*)\}")
FIELD = re.compile(r'\.(label|id|source|cause|core) =((?:\s*"(?:[^"\\]|\\.)*")+)')
NOISE = 0.005  # a gain of less than that is none


@dataclasses.dataclass
class Step:
    """One kernel of the climb."""
    id: str  # "04.1"
    label: str
    cause: str
    lesson: str  # the folder of its lesson, from the root
    kernel: Path  # from the root
    base: str  # the id of the step that it builds on; "" for the first

    @property
    def diff(self):
        """The name of the target that prints what it changes."""
        if "." in self.id and self.base.split(".")[0] == self.id.split(".")[0]:
            return f"diff_{self.base}_{self.id.split('.')[1]}".replace(".", "_")
        return f"diff_{self.base}_{self.id}".replace(".", "_")


def braces(text, begin):
    """What stands between the brace at `begin` and the one that closes it."""
    depth = 0
    for i in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin + 1:i]
    return ""


def rungs_of(text):
    """The fields of each rung that a lesson.cu lists."""
    begin = re.search(r"\.rungs\s*=\s*(?={)", text)
    if not begin:
        return []
    return [{key: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', words)) for key, words in FIELD.findall(".label =" + rung)}
            for rung in braces(text, begin.end()).split(".label =")[1:]]


def steps(root=ROOT):
    """All steps in the order of the climb."""
    paths = sorted([*root.glob("[0-9][0-9]_*/lesson.cu"), *root.glob("[0-9][0-9]_*/any_shape/lesson.cu")])
    paths = sorted(paths, key=lambda path: (path.relative_to(root).parts[0], len(path.parts)))
    found, last = [], {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        folder = path.parent.relative_to(root)
        below = BUILDS_ON.search(text)
        names = re.findall(r'"([^"]+)"', below[1]) if below else []
        base = last.get(names[0], "") if names else ""
        for fields in rungs_of(text):
            if fields.get("core", "wgmma") != "wgmma":
                continue
            step = Step(fields.get("id", folder.name[:2]), fields["label"], fields.get("cause", ""), folder.as_posix(),
                        folder / fields.get("source", "gemm.cuh"), base)
            found.append(step)
            base = step.id
        last[folder.name] = base
    return found


def step_of(number, root=ROOT):
    """The step of that id. @throws KeyError"""
    return {step.id: step for step in steps(root)}[number]


def diffs(root=ROOT):
    """(the step, the one that it builds on) for each but the first, and but the kernels for any shape: these are many."""
    by_id = {step.id: step for step in steps(root)}
    return [(step, by_id[step.base]) for step in by_id.values() if step.base and step.id != "any"]


def diffs_of_attention(root=ROOT):
    """The same of the steps of attention: the kernels in its folder `steps`, and behind them its last."""
    folder = Path("05_ws_double_buffer/attention")
    kernels = [*sorted(path.relative_to(root) for path in (root / folder / "steps").glob("*.cuh")), folder / "attention.cuh"]
    own = [Step(f"attention.{i}", f"step {i}", "", folder.as_posix(), kernel, f"attention.{i - 1}") for i, kernel in enumerate(kernels, 1)]
    return list(zip(own[1:], own))


def main(folder=None):
    for step, base in diffs() + diffs_of_attention():
        if folder is None or (ROOT / step.lesson).resolve() == Path(folder).resolve():
            print(step.diff, base.kernel.as_posix(), step.kernel.as_posix())


if __name__ == "__main__":
    main(*sys.argv[1:])
