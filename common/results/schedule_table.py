"""Makes the tables of lesson 07's page: runs of whole schedules of a host, with the bound that no schedule can beat."""
import json

from climb_table import BadInput, shape, shape_title
from page_requests import markdown, meets, parse_words, value

UNITS = {"us": "µs", "mb": "MB", "kib": "KiB"}  # as settings spell them, and as headings do


def schedule_table(line, words, folder):
    """What `<!-- schedules: FILE rows=KEY,... show=KEY,... only=KEY:VALUE,... -->` asks for.

    FILE may hold a *; then it is the newest that there is. Without one, a line says that nothing was recorded yet.
    rows are the settings that name a row, show are settings that are shown at its end.
    """
    name, *words = words
    values, only = parse_words(line, words, ("rows", "show"))
    if "rows" not in values:
        raise BadInput(f"{line}: rows=KEY is missing")
    path = max(folder.glob(name), default=None)
    if path is None:
        return ["Not recorded yet."]
    results = json.loads(path.read_text(encoding="utf-8"))
    runs = [run for run in results["runs"] if run["time_us_median"] is not None and meets(run, only)]
    if not runs:
        raise BadInput(f"{line}: no run of {path.name} is like that")
    shown = values["show"].split(",") if "show" in values else []
    verified = "" if all(run["verified"] for run in runs) else "; not all results are verified"
    return rows_of(runs, values["rows"].split(","), shown) + [
        "", f"{results['gpu']}, {results['date']}, commit `{results['commit']}`{verified}."]


def rows_of(runs, keys, shown):
    """A row for each run: its settings, its shape where there are several, time, spread, speed, gain, and the bound."""
    sizes = list(dict.fromkeys(shape(run) for run in runs))
    scale, unit = (1e3, "ms") if min(run["time_us_median"] for run in runs) >= 1e3 else (1, "µs")
    bounded = any(run.get("bound_us") for run in runs)
    speeds = any(run["tflops"] for run in runs)
    limits = bounded and any(run["settings"].get("bound_by") for run in runs)
    header = [name(key) for key in keys] + ["rows×N×K"] * (len(sizes) > 1) + [unit, "± %"] + ["TFLOP/s"] * speeds + ["× first"]
    header += [f"bound, {unit}", "× bound"] * bounded + ["bound by"] * limits + [name(key) for key in shown]
    rows = []
    for size in sizes:
        here = [run for run in runs if shape(run) == size]
        for run in here:
            us = run["time_us_median"]
            row = [f"`{title(run, key)}`" if title(run, key) else "" for key in keys] + [shape_title(size)] * (len(sizes) > 1)
            row += [f"{us / scale:.4g}", f"{(run['time_us_q3'] - run['time_us_q1']) / 2 / us * 100:.1f}"]
            row += [f"{run['tflops']:.4g}" if run["tflops"] else ""] * speeds
            row.append(f"{here[0]['time_us_median'] / us:.2f}")
            if bounded:
                bound = run.get("bound_us")
                row += [f"{bound / scale:.4g}", f"{us / bound:.3f}"] if bound else ["", ""]
            row += [value(run, "bound_by")] * limits
            rows.append(row + [title(run, key) for key in shown])
    return markdown(header, rows)


def name(key):
    """A setting's name as a heading: "host_us" is "host µs"."""
    words = key.replace("gb_per_s", "GB/s").split("_")
    return " ".join(UNITS.get(word, word) for word in words)


def title(run, key):
    """The setting as it is: cells, unlike requests, may have blanks."""
    return run["settings"].get(key, value(run, key))
