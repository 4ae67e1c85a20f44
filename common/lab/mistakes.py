"""The planted mistakes of the lessons: what the patches in NN_name/broken say of themselves.

A patch begins with these lines, then comes a unified diff:

    Mistake: one sentence: what was done
    Kind: handshake (an order that nothing keeps), memory (a place that is not there, or was never written) or
          performance (right, but slow)
    Run: arguments of the program with which it shows; also those with which the right kernel must raise no alarm
    Notice: the detector that should notice it, or nothing
    Says: words that must be in the CPU device's report (of a performance mistake: the counter that grows, or the remark of
          the compiler)
    Compiles: for the CPU device alone, if the GPU's compiler refuses it
"""
import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANY_SHAPE = "06_any_shape"
CPU_DEVICE_ALONE = "for the CPU device alone"
KINDS = ("handshake", "memory", "performance")


class BadInput(Exception):
    """What is wrong, in one line."""


def number_of(lesson):
    """What programs and tests call a lesson: "05"; the kernels for any shape, which lesson 06 leads to, "any"."""
    return "any" if lesson == ANY_SHAPE else lesson[:2]


def lesson_of(folder):
    """The name of the lesson in a folder."""
    return ANY_SHAPE if folder.name == "any_shape" else folder.name


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

    @property
    def number(self):
        return number_of(self.lesson)

    @property
    def program(self):
        return f"broken_{self.number}_{self.name}"


def read_patch(path):
    """@throws BadInput if a line is missing"""
    lines = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("--- "):
            break
        key, separator, value = line.partition(": ")
        if separator:
            lines[key] = value.strip()
    missing = [key for key in ("Mistake", "Kind", "Run", "Notice") if key not in lines]
    if missing:
        raise BadInput(f"{path}: has no line '{missing[0]}: ...'")
    if lines["Kind"] not in KINDS:
        raise BadInput(f"{path}: Kind: {lines['Kind']}: must be {', '.join(KINDS)}")
    return Mistake(lesson_of(path.parent.parent), path.stem, lines["Mistake"], lines["Kind"], tuple(lines["Run"].split()),
                   lines["Notice"], lines.get("Says", ""),
                   lines.get("Compiles") == CPU_DEVICE_ALONE)


def read_mistakes(numbers=(), folder=None):
    """All mistakes in the order of the ladder; of these lessons only, if there are any.

    @param folder where NN_name/*.patch are looked for, instead of NN_name/broken in the repository
    """
    if folder:
        return [dataclasses.replace(read_patch(path), lesson=path.parent.name)
                for path in sorted(pathlib.Path(folder).glob("[0-9][0-9]_*/*.patch"))
                if not numbers or number_of(path.parent.name) in numbers]
    paths = sorted([*ROOT.glob("[0-9][0-9]_*/broken/*.patch"), *ROOT.glob("[0-9][0-9]_*/any_shape/broken/*.patch")],
                   key=lambda path: (lesson_of(path.parent.parent).replace("06_any", "06_z"), path.name))
    mistakes = [read_patch(path) for path in paths]
    known = {mistake.number for mistake in mistakes}
    for number in numbers:
        if number not in known:
            raise BadInput(f"--lessons {number}: no mistakes for it; there are some for {', '.join(sorted(known))}")
    return [mistake for mistake in mistakes if not numbers or mistake.number in numbers]
