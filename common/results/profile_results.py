#!/usr/bin/env python3
"""Puts together what profile.sh left in a folder, as one result file.

    profile_results.py FOLDER OUTPUT

In the folder: header.json, a result file that says date, commit, GPU, driver and toolkit; metrics.txt, the metrics that
were asked for, one a line; profiler.txt, the profiler's version; and for each launch NN.txt, the command line of the
program, and NN.csv, what Nsight Compute wrote (--csv --page raw --print-units base). A metric without a value in any
launch is listed as absent. Exit code 2: bad input, one line.
"""
import csv
import json
import sys
from pathlib import Path

from climb_table import BadInput
from script import end_with, json_rows, write_whole


def number(text):
    """A figure of the CSV, which may group its digits; None where the profiler had none ("n/a")."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def read_counters(path, wanted):
    """The kernel's name and its metrics, from a CSV with lines of the profiler's own before the header."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    rows = list(csv.DictReader(lines[begin:])) if begin is not None else []
    rows = [row for row in rows if row["ID"]]  # the row below the header holds the units
    if not rows:
        words = " ".join(line for line in lines if "ERROR" in line or "WARNING" in line)
        raise BadInput(f"{path}: no kernel was profiled: {words or 'see the file'}")
    figures = {name: number(rows[0].get(name) or "") for name in wanted}
    return rows[0]["Kernel Name"], {name: figure for name, figure in figures.items() if figure is not None}


def read_launch(text):
    """The lesson, the problem and the settings of a command line like "05_x --size 4096 --group 8"."""
    lesson, *words = text.split()
    options = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2]))
    size = int(options.pop("size"))
    return {"lesson": lesson, "core": options.get("core", "auto"), "m": size, "n": size, "k": size, "settings": options}


def collect(folder):
    try:
        header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
        wanted = (folder / "metrics.txt").read_text(encoding="utf-8").split()
        results = {key: header[key] for key in ("date", "commit", "gpu", "driver", "toolkit")}
        results["profiler"] = (folder / "profiler.txt").read_text(encoding="utf-8").strip()
        launches = []
        for path in sorted(folder.glob("[0-9]*.csv")):
            kernel, metrics = read_counters(path, wanted)
            launch = read_launch(path.with_suffix(".txt").read_text(encoding="utf-8"))
            launches.append({**launch, "kernel": kernel, "metrics": metrics})
    except OSError as error:
        raise BadInput(f"{error.filename}: {error.strerror}") from error
    except (ValueError, KeyError) as error:
        raise BadInput(f"{folder}: {error!r}") from error
    if not launches:
        raise BadInput(f"{folder}: no launch was profiled")
    seen = {name for launch in launches for name in launch["metrics"]}
    results["absent"] = [name for name in wanted if name not in seen]
    results["launches"] = launches
    return results


def main():
    if len(sys.argv) != 3:
        raise BadInput("needs FOLDER and OUTPUT")
    results = collect(Path(sys.argv[1]))
    output = Path(sys.argv[2])
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json_rows(results))
    print(f"{output}: {len(results['launches'])} launches; absent: {', '.join(results['absent']) or 'nothing'}")


if __name__ == "__main__":
    end_with(main, BadInput)
