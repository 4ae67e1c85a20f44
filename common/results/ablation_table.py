"""The table of what each ingredient of a lesson is worth, of files that `ladder ablate NN --json` wrote.

    <!-- ablation: 02 05 -->
    <!-- ablation: 05 most=7 -->
    <!-- end -->

For each lesson the newest record `ablate_NN`; with most=N, the N ingredients that are worth the most, in
this order. A table of one lesson with most= names lesson and shape in its heading alone.
"""
from climb_table import BadInput, read_results, shape, shape_title
from page_requests import markdown, without_empty_columns
from record_files import newest
from stale import where


def ablation_table(line, words, folder):
    """A row for each program: its time and its clocks (time x SM clock), and how much more they are than the lesson's as it is,
    which comes first."""
    words, most = [word for word in words if not word.startswith("most=")], [word[5:] for word in words if word.startswith("most=")]
    if not words:
        raise BadInput(f"{line}: needs the numbers of lessons")
    if len(most) > 1 or any(not number.isdecimal() or int(number) == 0 for number in most):
        raise BadInput(f"{line}: most= must be a number from 1 on, and stand there once")
    rows, origins, heading = [], {}, "without"
    for number in words:
        path = newest(folder, f"experiments/ablate_{number}")
        if path is None:
            rows.append([f"{number}: not recorded yet"] + [""] * 5)
            continue
        results = read_results(path)
        runs = results["runs"]
        if most:
            shapes = list(dict.fromkeys(map(shape, runs)))
            if len(shapes) > 1:
                raise BadInput(f"{line}: most= needs a file of one shape, and {path.name} has several")
            runs = runs[:1] + sorted(runs[1:], key=lambda run: -run["time_us_median"])[:int(most[0])]
            if len(words) == 1:
                heading = f"{number}, {shape_title(shapes[0])}, without"
        for run in runs:
            name = run["settings"]["without"]
            more = run["time_us_median"] / runs[0]["time_us_median"] - 1
            clocks = [one["time_us_median"] * one["clock_mhz"] if one.get("clock_mhz") else None for one in (run, runs[0])]
            more_clocks = f"{100 * (clocks[0] / clocks[1] - 1):+.1f} %" if all(clocks) and run is not runs[0] else ""
            rows.append([name if heading != "without" else f"{number}, {shape_title(shape(run))}: {name}", f"{run['time_us_median']:.0f}",
                         f"{run['tflops']:.0f}", "" if run is runs[0] else f"{100 * more:+.1f} %", more_clocks,
                         f"{run['clock_mhz']:.0f}" if run.get("clock_mhz") else ""])
        origins.setdefault(where(results, runs), []).append(number)
    places = [f"{', '.join(numbers)}: {origin}." if len(origins) > 1 else f"{origin}." for origin, numbers in origins.items()]
    return markdown(*without_empty_columns([heading, "µs", "TFLOP/s", "time", "clocks", "SM clock, MHz"], rows)) + ([""] + places if places else [])
