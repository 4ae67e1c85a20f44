"""The exercises of a lesson, as their descriptions say.

    <!-- exercises: 04 -->
    <!-- end -->

The word is the lesson's number. There are no links: `ladder learn` makes the file that a learner begins with, and says what
one can do when it is done.
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
    if len(words) != 1:
        raise BadInput(f"{line}: needs the number of a lesson")
    folders = sorted((path.parent for path in root.glob(f"{words[0]}_*/exercise/*_*/exercise.md")),
                     key=lambda folder: (folder.name[0].isdigit(), folder.name))  # short exercises, with letters, come first
    if not folders:
        raise BadInput(f"{line}: lesson {words[0]} has no exercises")
    rows = [row(folder) for folder in folders]
    return [f"`build/bin/ladder learn {rows[0][0]}` opens and checks the first:", "", *left_aligned(HEADER, rows)]
