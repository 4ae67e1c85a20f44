"""What the requests of pages have in common: their words, the runs that they choose, and the tables that they become."""
import re

from climb_table import BadInput


def value(run, key):
    """A run's lesson, core, step or size, or one of its settings, with _ for blanks: the words of a request have none."""
    if key in ("lesson", "core"):
        return run[key]
    if key == "rung":
        return run.get("rung", "")
    return str(run.get("m", "")) if key == "size" else run["settings"].get(key, "").replace(" ", "_")


def parse_words(line, words, keys):
    """The values of words like rows=KEY, for the given keys, and the conditions of only=KEY:VALUE,..."""
    values, only = {}, {}
    for word in words:
        key, _, text = word.partition("=")
        if key in keys:
            values[key] = text
        elif key == "only" and ":" in text:
            for condition in text.split(","):
                name, _, wanted = condition.partition(":")
                only.setdefault(name, set()).add(wanted)
        else:
            allowed = ", ".join(f"{name}=" for name in keys)
            raise BadInput(f"{line}: '{word}' is neither {allowed} nor only=KEY:VALUE")
    return values, only


def meets(run, only):
    return all(value(run, key) in wanted for key, wanted in only.items())


SPEEDS = {"TFLOP/s", "× first"}  # titles of columns whose numbers grow where times shrink


def off_by(predicted, measured, of_speed=False):
    """The error of the predicted time, in percent of the measured: "−18 %" where it took longer than predicted. Of a range, 1.1–1.2,
    only what lies outside; of no prediction, nothing. @throws ValueError unless it is numbers"""
    if not predicted:
        return ""
    ends = [float(end) for end in predicted.split("–")]
    nearest = min(max(measured, min(ends)), max(ends))
    times = (measured, nearest) if of_speed else (nearest, measured)
    error = f"{100 * (times[0] / times[1] - 1):+.0f} %".replace("-", "−")
    return "0 %" if error in ("+0 %", "−0 %") else error


def with_predictions(line, table, column, numbers, title):
    """The table with two columns behind the named one: what was predicted of each row, and by how much that is off."""
    cells = [row[2:-2].split(" | ") for row in table]
    if column not in cells[0] or len(numbers) != len(cells) - 2:
        raise BadInput(f"{line}: predicted= needs {len(cells) - 2} numbers for the column '{column}'; some may be missing")
    at = cells[0].index(column) + 1
    try:
        errors = [off_by(number, float(row[at - 1]), column in SPEEDS) for number, row in zip(numbers, cells[2:])]
    except ValueError as error:
        raise BadInput(f"{line}: predicted=: {error}") from None
    added = [[title, "off by"], ["--:", "--:"], *zip(numbers, errors)]
    return ["| " + " | ".join([*row[:at], *new, *row[at:]]) + " |" for row, new in zip(cells, added)]


def titles_of(values):
    """The columns that without= names, with _ for blanks: no title begins behind a comma and a blank."""
    return [title.replace("_", " ") for title in re.split(r",(?!_)", values.get("without", "")) if title]


def without_columns(line, table, titles):
    """The table without the columns of these titles."""
    cells = [row[2:-2].split(" | ") for row in table]
    for title in titles:
        if title not in cells[0]:
            raise BadInput(f"{line}: without= names '{title}', which is no column")
    kept = [i for i, title in enumerate(cells[0]) if title not in titles]
    return ["| " + " | ".join(row[i] for i in kept) + " |" for row in cells]


def without_empty_columns(header, rows):
    """Header and rows without the columns in which no row has anything."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return [header[i] for i in kept], [[row[i] for i in kept] for row in rows]


def left_aligned(header, rows):
    """Lines of a table of words."""
    return [f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *rows]]


def markdown(header, rows):
    """Lines of a table; all columns but the first are numbers."""
    lines = [header, ["---"] + ["--:"] * (len(header) - 1)] + rows
    return ["| " + " | ".join(cells) + " |" for cells in lines]
