"""What the parts of the kernels take, from the newest experiment `parts`.

    <!-- parts: load rows=boxes columns=blocks,from -->
    <!-- parts: clocked rows=what,from,behind figures=clocks,mhz,ns -->
    <!-- parts: product rows=n,warpgroups,wait,loads figures=clocks,ideal,bytes only=unusual: -->
    <!-- end -->

The first word is the part. rows= and columns= name its settings: a row, or a column, for each combination of their values, in the
order of the record. figures= says what is shown: clocks (the default), spread (half the distance of the quartiles, in percent),
bytes (a clock), ideal (clocks at the hardware's peak), mhz (the clock meanwhile), ns (the clocks at that clock). Without columns=, each figure has a column; else there is one figure.
only=KEY:VALUE,... as for `table`; without a VALUE: the rows that lack this setting.
"""
import json

from climb_table import BadInput
from page_requests import markdown, meets, parse_words
from record_files import newest
from stale import dated

RECORDS = {"clocked": "clocks", "paced": "paces", "pieces": "paces", "burst": "paces"}  # where they are, if not in `parts`
FIGURES = {"clocks": ("clocks", lambda run: short(run["clocks"])),
           "spread": ("± %", lambda run: f"{50 * (run['clocks_q3'] - run['clocks_q1']) / run['clocks']:.1f}"),
           "bytes": ("bytes a clock", lambda run: f"{run['bytes'] / run['clocks']:.1f}" if "bytes" in run else ""),
           "mhz": ("MHz", lambda run: f"{run['mhz']:.0f}" if "mhz" in run else ""),
           "ns": ("ns", lambda run: f"{1e3 * run['clocks'] / run['mhz']:.0f}" if "mhz" in run else ""),
           "ideal": ("ideal", lambda run: f"{run['ideal_clocks']:.0f}" if "ideal_clocks" in run else "")}


def short(clocks):
    return f"{clocks:.{0 if clocks >= 100 else 1}f}"


def read_parts(results_folder, record="parts"):
    """The newest record, or None. @throws BadInput if it is none"""
    path = newest(results_folder, f"experiments/{record}")
    if path is None:
        return None
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        for run in results["runs"]:
            run["part"], run["settings"], run["clocks"]  # each row has these
        return results
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no record of parts: {error!r}") from error


def parts_table(line, words, results_folder):
    """The lines below the request."""
    if not words:
        raise BadInput(f"{line}: needs the name of a part")
    values, only = parse_words(line, words[1:], ("rows", "columns", "figures"))
    figures = values.get("figures", "clocks").split(",")
    unknown = [name for name in figures if name not in FIGURES]
    if unknown or "rows" not in values or "columns" in values and len(figures) > 1:
        raise BadInput(f"{line}: needs rows=, and figures= of {', '.join(FIGURES)}; one of them where there is columns=")
    results = read_parts(results_folder, RECORDS.get(words[0], "parts"))
    if results is None:
        return ["Not recorded yet."]
    row_keys = values["rows"].split(",")
    column_keys = values["columns"].split(",") if "columns" in values else []
    cells = {}
    for run in results["runs"]:
        if run["part"] != words[0] or not meets(run, only):
            continue
        row, column = (tuple(run["settings"].get(key, "") for key in keys) for keys in (row_keys, column_keys))
        if (row, column) in cells:
            raise BadInput(f"{line}: several rows of the record are '{', '.join(row + column)}'")
        cells[row, column] = run
    if not cells:
        raise BadInput(f"{line}: no row of the record is like that")
    columns = list(dict.fromkeys(column for _, column in cells))
    header = [", ".join(column) for column in columns] if column_keys else [FIGURES[name][0] for name in figures]
    rows = []
    for row in dict.fromkeys(row for row, _ in cells):
        here = [cells.get((row, column)) for column in columns]
        rows.append([", ".join(filter(None, row))] + [FIGURES[name][1](run) if run else "" for run in here for name in figures])
    title = f"{FIGURES[figures[0]][0]}" if column_keys else ""
    return [*markdown([title, *header], rows), "", f"{results['gpu']}, {dated(results)}, commit `{results['commit']}`."]
