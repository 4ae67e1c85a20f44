"""The exercises of a lesson, as their descriptions say.

    <!-- exercises: 04 -->
    <!-- end -->

The word is the lesson's number. There are no links: `ladder learn` makes the file that a learner begins with, and says what
one can do when it is done.
"""
import json

from climb_table import BadInput
from page_requests import left_aligned

HEADER = ["exercise", "kind", "what to do"]


def row(folder):
    """The cells of the exercise in this folder."""
    path = folder / "exercise.json"
    try:
        exercise = json.loads(path.read_text(encoding="utf-8"))
        kind, title = (exercise[field] for field in ("kind", "title"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error!r}") from error
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path}: has no field {error}") from error
    name = f"{folder.parents[1].name[:2]}.{folder.name.partition('_')[0]}"
    return [name, kind, title]


def exercise_table(line, words, root):
    """The lines that stand for `<!-- exercises: NN -->`."""
    if len(words) != 1:
        raise BadInput(f"{line}: needs the number of a lesson")
    folders = sorted((path.parent for path in root.glob(f"{words[0]}_*/exercise/*_*/exercise.json")),
                     key=lambda folder: (folder.name[0].isdigit(), folder.name))  # short exercises, with letters, come first
    if not folders:
        raise BadInput(f"{line}: lesson {words[0]} has no exercises")
    rows = [row(folder) for folder in folders]
    return [f"`build/bin/ladder learn {rows[0][0]}` opens and checks the first:", "", *left_aligned(HEADER, rows)]
