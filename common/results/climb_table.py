#!/usr/bin/env python3
"""Makes the README's table of the climb from a result file that `ladder --json` wrote.

    climb_table.py docs/results/2026-11-21-h200.json                     prints the table
    climb_table.py docs/results/2026-11-21-h200.json --into README.md    puts it between the markers
    climb_table.py docs/results/2026-11-21-h200.json --into README.md --check
                                                                         fails if it is not what stands there

The markers are lines of their own: `<!-- climb:begin -->` and `<!-- climb:end -->`. Exit code 2: bad input, one line.
"""
import argparse
import json
import sys

from whole_file import write_whole

BEGIN, END = "<!-- climb:begin -->", "<!-- climb:end -->"
LIBRARIES = {"cublas_gemmex": "cublasGemmEx", "cublaslt": "cublasLt, best of 8"}


class BadInput(Exception):
    """What is wrong with an argument or a file, in one line."""


def read_results(path):
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
        for key in ("date", "commit", "gpu", "driver", "toolkit", "runs"):
            if key not in results:
                raise BadInput(f"{path}: is no result file: '{key}' is missing")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: is no result file: {error}") from error
    timed = [run for run in results["runs"] if run["tflops"] is not None]
    if not timed:
        raise BadInput(f"{path}: holds no times; record it on a GPU")
    results["runs"] = timed
    return results


def contender(run):
    """What makes a row: the same lesson or library with the same core and settings."""
    return run["lesson"], run["core"], tuple(sorted(run["settings"].items()))


def shape(run):
    return run["m"], run["n"], run["k"]


def shape_title(sizes):
    return f"{sizes[0]}³" if len(set(sizes)) == 1 else "×".join(map(str, sizes))


def is_library(run):
    return run["lesson"] in LIBRARIES


def cublas_tflops(runs, sizes):
    """The faster layout of B, as in the programs' own tables; None if cuBLAS did not take part."""
    figures = [run["tflops"] for run in runs if run["lesson"] == "cublas_gemmex" and shape(run) == sizes]
    return max(figures, default=None)


def row_title(run, runs):
    """The lesson, and what tells this row from the lesson's others: its core, and settings that vary among them."""
    siblings = [other for other in runs if other["lesson"] == run["lesson"]]
    if is_library(run):
        return f"{LIBRARIES[run['lesson']]}, B {run['settings'].get('b', '')}"
    title = f"[{run['lesson']}]({run['lesson']}/)"
    if len({contender(other) for other in siblings}) == 1:
        return title
    details = [f"`{run['core']}`"]
    for name, value in sorted(run["settings"].items()):
        if name != "core" and len({other["settings"].get(name) for other in siblings}) > 1:
            details.append(f"{name} {value}")
    return f"{title}, {', '.join(details)}"


def speed(run):
    return f"{run['tflops']:.{0 if run['tflops'] >= 100 else 1}f}" if run else ""


def comparison(run, before, cublas):
    """The gain over the row before, and the percentage of cuBLAS."""
    if not run:
        return ["", ""]
    gain = f"{run['tflops'] / before['tflops']:.2f}×" if before and not is_library(run) else ""
    return [gain, f"{run['tflops'] / cublas * 100:.0f} %" if cublas else ""]


def make_table(results):
    runs = results["runs"]
    shapes = sorted({shape(run) for run in runs}, key=lambda s: (s[0] * s[1] * s[2], s))
    rows = list(dict.fromkeys(contender(run) for run in runs))
    by_place = {(contender(run), shape(run)): run for run in runs}

    judged = shapes[len(shapes) // 2]  # one size is enough for the comparison; with all, the table is too wide
    header = ["rung"] + [f"{shape_title(sizes)}, TFLOP/s" for sizes in shapes]
    header += [f"× last, {shape_title(judged)}", f"% cuBLAS, {shape_title(judged)}"]
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    before, slower = {}, {}
    for key in rows:
        line = [row_title(next(run for run in runs if contender(run) == key), runs)]
        line += [speed(by_place.get((key, sizes))) for sizes in shapes]
        line += comparison(by_place.get((key, judged)), before.get(judged), cublas_tflops(runs, judged))
        for sizes in shapes:
            run = by_place.get((key, sizes))
            if not run or is_library(run):
                continue
            if sizes in before and run["tflops"] < before[sizes]["tflops"]:
                slower.setdefault(line[0], []).append(shape_title(sizes))
            before[sizes] = run
        lines.append("| " + " | ".join(line) + " |")

    clocks = [run["sm_clock_mhz"] for run in runs if run["sm_clock_mhz"] is not None]
    clock = f", SM clock {min(clocks):.0f} to {max(clocks):.0f} MHz" if clocks else ""
    verified = all(run["verified"] for run in runs)
    lines += [
        "",
        f"{results['gpu']}, driver {results['driver']}, {results['toolkit']}{clock}; {results['date']}, commit "
        f"`{results['commit']}`. {'All results verified.' if verified else 'Not all results are verified.'} "
        "Percent of the faster cublasGemmEx (B row-major or transposed) of the same interleaved run.",
    ]
    for rung, places in slower.items():
        lines += ["", f"{rung} is slower than the rung before it at {', '.join(places)}; its page says why."]
    return "\n".join(lines)


def read_page(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def replaced(path, table, text):
    """The text of the page at `path` with the table between its markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise BadInput(f"{path}: needs the lines {BEGIN} and {END}, once each")
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="a result file")
    parser.add_argument("--into", metavar="PAGE", help="the page that holds the markers")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if the page is out of date")
    arguments = parser.parse_args()
    if arguments.check and not arguments.into:
        parser.error("--check: needs --into")

    table = make_table(read_results(arguments.results))
    if not arguments.into:
        print(table)
        return 0
    old = read_page(arguments.into)
    new = replaced(arguments.into, table, old)
    if arguments.check and new != old:
        print(f"{arguments.into}: the table is not that of {arguments.results}; run this without --check", file=sys.stderr)
        return 1
    if new != old:
        write_whole(arguments.into, new)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as error:
        print(f"climb_table.py: error: {error}", file=sys.stderr)
        sys.exit(2)
