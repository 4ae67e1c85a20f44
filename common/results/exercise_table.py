"""The exercises of a lesson, as their descriptions say.

    <!-- exercises: 04 -->
    <!-- exercises: 02 a 1 5 -->
    <!-- exercises: 04.a -->
    <!-- end -->

The first word is the lesson's number, for a table of all or of those named behind it, or one exercise, for a line that invites to
it. There are no links: `ladder learn` makes the file that a learner begins with, and says what one can do when it is done.
"""
from climb_table import BadInput
from page_requests import left_aligned

HEADER = ["exercise", "kind", "what to do"]


def row(folder):
    """The cells of the exercise in this folder."""
    path = folder / "exercise.md"
    head = path.read_text(encoding="utf-8").partition("\n---\n")[0]  # common/exercise/exercise_file.cpp reads the rest
    fields = dict(line.partition(": ")[::2] for line in head.splitlines()[1:])
    try:
        kind, title = fields["kind"], fields["title"]
    except KeyError as error:
        raise BadInput(f"{path}: has no field {error}") from error
    name = f"{folder.parents[1].name[:2]}.{folder.name.partition('_')[0]}"
    return [name, kind, title]


def exercise_table(line, words, root):
    """The lines that stand for `<!-- exercises: NN -->`."""
    lesson, _, chosen = (words or [""])[0].partition(".")
    if not lesson or chosen and words[1:]:
        raise BadInput(f"{line}: needs the number of a lesson, perhaps with some of its exercises, or one exercise")
    folders = sorted((path.parent for path in root.glob(f"{lesson}_*/exercise/{chosen or '*'}_*/exercise.md")),
                     key=lambda folder: (folder.name[0].isdigit(), folder.name))  # short exercises, with letters, come first
    if not folders:
        raise BadInput(f"{line}: there is no exercise {words[0]}" if chosen else f"{line}: lesson {lesson} has no exercises")
    rows = [row(folder) for folder in folders if not words[1:] or folder.name.partition("_")[0] in words[1:]]
    if words[1:] and [cells[0] for cells in rows] != [f"{lesson}.{word}" for word in words[1:]]:
        raise BadInput(f"{line}: names exercises that there are not, or in another order")
    if chosen:
        return [f"**Try it:** {rows[0][2]}: `build/bin/ladder learn {words[0]}`."]
    return [f"`build/bin/ladder learn {rows[0][0]}` opens and checks the first:", "", *left_aligned(HEADER, rows)]
