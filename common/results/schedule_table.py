"""Makes the tables of lesson 07's page: runs of whole schedules of a host, with the bound that no schedule can beat; and how much of an
all-reduce was hidden."""
import json

from climb_table import BadInput, shape, shape_title
from page_requests import markdown, meets, parse_words, value, with_predictions
from record_files import newest
from stale import dated, where

FIGURES = ("time", "spread", "speed", "gain", "bound", "times_bound", "bound_by")  # the columns between the settings
UNITS = {"us": "µs", "mb": "MB", "kib": "KiB"}  # as settings spell them, and as headings do


def schedule_table(line, words, folder):
    """What `<!-- schedules: FILE rows=KEY,... show=KEY,... figures=NAME,... predicted=N,... columns=KEY only=KEY:VALUE,... -->` asks for.

    FILE is the name of a record, experiments/alloc. Where there is none, a line says that nothing was recorded yet.
    rows are the settings that name a row, show are settings that are shown at its end. figures are those of FIGURES that
    the page uses, or none; without it, all that there are. predicted are the times that the page predicted, one for each row in
    the unit of the table; beside each is by how much it is off. With columns=KEY there is a column of times for each value of this
    setting, instead of the figures.
    """
    name, *words = words
    values, only = parse_words(line, words, ("rows", "show", "figures", "predicted", "columns"))
    if "rows" not in values:
        raise BadInput(f"{line}: rows=KEY is missing")
    if "columns" in values and ("show" in values or "figures" in values):
        raise BadInput(f"{line}: columns=KEY shows times alone, neither show=KEY nor figures=NAME")
    chosen = values.get("figures", ",".join(FIGURES))
    figures = [] if chosen == "none" else chosen.split(",")
    if unknown := [figure for figure in figures if figure not in FIGURES]:
        raise BadInput(f"{line}: figures={unknown[0]} is none of {', '.join(FIGURES)}")
    path = newest(folder, name)
    if path is None:
        return ["Not recorded yet."]
    results = json.loads(path.read_text(encoding="utf-8"))
    runs = [run for run in results["runs"] if run.get("time_us_median") is not None and meets(run, only)]
    if not runs:
        raise BadInput(f"{line}: no run of {path.name} is like that")
    shown = values["show"].split(",") if "show" in values else []
    keys = values["rows"].split(",")
    table = times_beside(line, runs, keys, values["columns"]) if "columns" in values else rows_of(runs, keys, shown, figures)
    if "predicted" in values:
        unit = unit_of(runs)[1]
        table = with_predictions(line, table, unit, values["predicted"].split(","), f"predicted, {unit}")
    return table + ["", f"{where(results, runs)}."]


def sizes_of(runs):
    return list(dict.fromkeys(shape(run) for run in runs))


def unit_of(runs):
    """What times are divided by, and the unit that they then have."""
    return (1e3, "ms") if min(run["time_us_median"] for run in runs) >= 1e3 else (1, "µs")


def named(run, keys):
    """The first cells of a run's row."""
    return [f"`{title(run, key)}`" if title(run, key) else "" for key in keys]


def rows_of(runs, keys, shown, figures):
    """A row for each run: its settings, its shape where there are several, time, spread, speed, gain, and the bound."""
    sizes, (scale, unit) = sizes_of(runs), unit_of(runs)
    there = {"time": unit, "spread": "± %", "gain": "× first"}
    if any(run.get("tflops") for run in runs):
        there["speed"] = "TFLOP/s"
    if any(run.get("bound_us") for run in runs):
        there.update({"bound": f"bound, {unit}", "times_bound": "× bound"})
        if any(run["settings"].get("bound_by") for run in runs):
            there["bound_by"] = "bound by"
    kept = [figure for figure in FIGURES if figure in figures and figure in there]
    header = [name(key) for key in keys] + ["rows×N×K"] * (len(sizes) > 1) + [there[figure] for figure in kept]
    rows = []
    for size in sizes:
        here = [run for run in runs if shape(run) == size]
        for run in here:
            us, bound = run["time_us_median"], run.get("bound_us")
            cells = {"time": f"{us / scale:.4g}", "spread": f"{(run['time_us_q3'] - run['time_us_q1']) / 2 / us * 100:.1f}",
                     "speed": f"{run['tflops']:.4g}" if run.get("tflops") else "", "gain": f"{here[0]['time_us_median'] / us:.2f}",
                     "bound": f"{bound / scale:.4g}" if bound else "", "times_bound": f"{us / bound:.3f}" if bound else "",
                     "bound_by": value(run, "bound_by")}
            rows.append(named(run, keys) + [shape_title(size)] * (len(sizes) > 1) + [cells[figure] for figure in kept] +
                        [title(run, key) for key in shown])
    return markdown(header + [name(key) for key in shown], rows)


def times_beside(line, runs, keys, second):
    """A row for each choice of the settings and each shape, with a column of times for each value of the second setting."""
    (scale, unit), several = unit_of(runs), len(sizes_of(runs)) > 1
    columns = list(dict.fromkeys(title(run, second) for run in runs))
    rows = {}
    for run in runs:
        cells = rows.setdefault((*named(run, keys), *[shape_title(shape(run))] * several), {})
        if title(run, second) in cells:
            raise BadInput(f"{line}: several runs have {second} {title(run, second)} in one row")
        cells[title(run, second)] = f"{run['time_us_median'] / scale:.4g}"
    header = [name(key) for key in keys] + ["rows×N×K"] * several + [f"{column}, {unit}" for column in columns]
    return markdown(header, [[*names, *(cells.get(column, "") for column in columns)] for names, cells in rows.items()])


def name(key):
    """A setting's name as a heading: "host_us" is "host µs"."""
    words = key.replace("gb_per_s", "GB/s").split("_")
    return " ".join(UNITS.get(word, word) for word in words)


def title(run, key):
    """The setting as it is: cells, unlike requests, may have blanks."""
    return run["settings"].get(key, value(run, key))


def hidden_table(line, words, folder):
    """What `<!-- hidden: FILE -->` asks for: from a run of the experiment allreduce, a row for each number of spare SMs.

    What is hidden is the time saved over the best run without overlap, that with no SMs spared, as a share of the
    shorter of its two parts.
    """
    if len(words) != 1:
        raise BadInput(f"{line}: one file is wanted")
    path = newest(folder, words[0])
    if path is None:
        return ["Not recorded yet."]
    results = json.loads(path.read_text(encoding="utf-8"))
    times, facts = {}, None
    for run in results["runs"]:
        facts = {**run["settings"], **{key: run[key] for key in ("m", "n", "k")}}
        times[run["settings"]["schedule"], int(run["settings"]["spare_sms"])] = (
            run["time_us_median"] / int(run["settings"]["batches"]))
    schedules = ["product alone", "all-reduce alone", "sequential", "overlapped"]
    spares = sorted({spare for _, spare in times})
    if not times or any((schedule, spare) not in times for schedule in schedules for spare in spares) or spares[0] != 0:
        raise BadInput(f"{line}: no whole run of the experiment allreduce is in the file")
    shorter = min(times["product alone", 0], times["all-reduce alone", 0])
    rows = []
    for spare in spares:
        hidden = 100 * (times["sequential", 0] - times["overlapped", spare]) / shorter
        rows.append([f"{spare}"] + [f"{times[schedule, spare]:.4g}" for schedule in schedules] + [f"{hidden:.0f}"])
    header = ["spare SMs"] + [f"{schedule}, µs" for schedule in schedules] + ["hidden, %"]
    return markdown(header, rows) + [
        "", f"{facts['devices']} × {results['gpu']}, {dated(results)}, commit `{results['commit']}`; C {facts['m']} × {facts['n']}, K {facts['k']}, "
            "times for a batch."]
