"""What the requests of pages have in common: their words, the runs that they choose, and the tables that they become."""
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
