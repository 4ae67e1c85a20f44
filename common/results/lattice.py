"""Which rung of the climb builds on which, as common/ladder/lattice.cpp has it.

A lesson's first rung builds on the last one of each lesson that its lesson.cu names (`.builds_on`), its second on the first.
"""
import re

BUILDS_ON = re.compile(r"\.builds_on = \{([^}]*)\}")
MOST_RUNGS = 2  # of a lesson; older files have more
NOISE = 0.005
# Loads and computes in turns, with a ring of slots, with roles, with both.
NEITHER, RING, ROLES, BOTH = "02", "03", "04", "05"


def lessons_below(root):
    """{"05_ws_double_buffer": ["03_double_buffer", "04_warp_specialized"], ...}, from the lessons' own words."""
    found = {}
    for path in sorted(root.glob("[0-9][0-9]_*/lesson.cu")):
        match = BUILDS_ON.search(path.read_text(encoding="utf-8"))
        found[path.parent.name] = re.findall(r'"([^"]+)"', match[1]) if match else []
    return found


def builds_on(root):
    """{"05": ["03", "04"], ...}"""
    return {name[:2]: [base[:2] for base in bases] for name, bases in lessons_below(root).items()}


class Lattice:
    """The rungs among contenders, which are tuples that begin with the lesson's name, in the order of the climb."""

    def __init__(self, contenders, lessons_below):
        self.below, self.by_lesson = lessons_below, {}
        for contender in dict.fromkeys(contenders):
            rungs = self.by_lesson.setdefault(contender[0][:2], [])
            if len(rungs) < MOST_RUNGS:
                rungs.append(contender)

    def rungs(self):
        return [rung for rungs in self.by_lesson.values() for rung in rungs]

    def last_of(self, number):
        """The last rung of a lesson; None if it has none here."""
        return self.by_lesson.get(number, [None])[-1]

    def bases(self, rung):
        """The rungs that this one builds on."""
        rungs = self.by_lesson[rung[0][:2]]
        if rung != rungs[0]:
            return [rungs[rungs.index(rung) - 1]]
        return [base for number in self.below.get(rung[0][:2], []) if (base := self.last_of(number))]
