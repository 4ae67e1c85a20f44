#!/usr/bin/env python3
"""Fills the tables of the pages with the figures of the committed result files.

    page_tables.py             brings every page of the repository up to date
    page_tables.py --check     changes nothing; exit code 1 if a page is not up to date
    page_tables.py PAGE...     only these pages

A page asks for a table with a line of its own; what stands between this line and `<!-- end -->` is generated:

    <!-- table: experiments/slots rows=slots -->
    <!-- end -->

That is the newest record of the name `slots` in docs/results/experiments; where there is none, a line says that nothing was recorded
yet. The name may be a file's: of those that a pattern with a * fits, the newest is taken. The words after it:

    rows=KEY            one row for each value of the setting; rows=rung: one for each rung of the ladder;
                        rows=instead: one for a kernel, and one for each other way to its result;
                        rows=size: one for each size, all lessons against the fastest library;
                        rows=launch: one for each run, launched through a graph and by a call for each launch;
                        rows=energy: one for each run, libraries too: its clock, its cycles, and what it costs in joules
    columns=KEY         one column of TFLOP/s for each value of a second setting, instead of the details
    predicted=UNIT:N,...  what the page predicted of each row, beside what was measured in the same unit, and by how much the predicted
                        time is off: tflops, instead of gains; gain, over the first row; or, of steps of the climb, clocks of
                        a step of k of the busiest SM; a number, a range as 1.1–1.2, or nothing
    without=TITLE,...   leaves out these columns, with _ for blanks, also for that behind a comma
    only=KEY:VALUE,...  only the runs with this setting, lesson, core or size (m); a key may come several times

The word `fold` folds the lines below any table, which say where and when it was measured; `fold_all` folds the table, too.

Other requests, each explained in the first comment of the file that fulfils it, are those of FILLERS below; some of them draw
a picture, too (PICTURES), as a file in docs/figures. A link to a planted mistake has its name as title, and gets its line:
`[text](broken/mistakes.patch#L12 "name")`. Exit code 2: bad input, one line.
"""
import argparse
import re
from pathlib import Path
from statistics import geometric_mean

import concept_pictures
import idea_pictures
import lesson_pictures
import motion_picture
import sm_picture
import time_picture
from climb_picture import climb_pictures, climb_text
from climb_table import (BadInput, climb_table, fastest_library, is_library, libraries_compared_with, library_title, read_page,
                         read_results, row_title, shape, shape_title)
from ctest_results import gpu_test_table, sanitizer_table
from cube_table import clocks_of_step, cube_pictures, cube_text
from experiment_tables import ablation_table, attention_table, parts_table
from fingerprint import planted
from lab_table import lab_table, number_of
from lanes_picture import lanes_pictures, lanes_text
from lattice import step_of
from model_table import model_table
from page_requests import (markdown, meets, parse_words, titles_of, value, with_predictions, without_columns,
                           without_empty_columns)
from profiles import profile_table
from record_files import newest
from ratio_plot import ratio_pictures, ratio_text
from sampled import sampled_pictures, sampled_text
from schedule_table import hidden_table, schedule_table
from script import end_with, write_whole
from stale import where
from timeline_tables import engines_table, phase_table, timeline_table
from tree_tables import changed_text, code_excerpt, exercise_table, file_table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
FIGURES = ROOT / "docs" / "figures"
CLOSE = "<!-- end -->"
FOLD, FOLD_ALL = "fold", "fold_all"
TO_MISTAKE = re.compile(r'\(([^()\s]*/mistakes[.]patch)(?:#L\d+)? "(\w+)"\)')
SHOWN = re.compile(r"!\[([^\]]*)\]\([./\w]*figures/(\w+\.svg)\)")
MOST_NAMED = 10  # shapes of a file that the line below a table names


class Request:
    """What a line `<!-- table: FILE WORDS -->` asks for."""

    def __init__(self, line, words):
        name, *words = words
        values, self.only = parse_words(line, words, ("rows", "columns", "predicted", "without"))
        self.without = titles_of(values)
        self.line, self.predicted = line, values.get("predicted")
        self.path = newest(RESULTS, name)
        self.rows, self.columns = values.get("rows", "rung"), values.get("columns")

    def wants(self, run):
        return (self.rows == "energy" or not is_library(run)) and meets(run, self.only)

    def table(self):
        if self.path is None:
            return ["Not recorded yet."]
        results = read_results(self.path)
        runs = [run for run in results["runs"] if self.wants(run)]
        if not runs:
            raise BadInput(f"{self.line}: no run of the file is like that")
        unit, _, numbers = (self.predicted or "").partition(":")
        lines = pivot(runs, self.rows, self.columns) if self.columns else \
            details(runs, results["runs"], self.rows, with_gains=unit not in ("tflops", "clocks"), with_steps=unit == "clocks")
        if self.predicted:
            if unit not in PREDICTED:
                raise BadInput(f"{self.line}: predicted= needs {', '.join(PREDICTED)}, and a number for each row")
            title = f"predicted, {PREDICTED[unit]}" if unit == "tflops" else "predicted"
            lines = with_predictions(self.line, lines, PREDICTED[unit], numbers.split(","), title)
        lines = without_columns(self.line, lines, self.without)
        if "% library" not in lines[0]:
            return lines + ["", origin(results)]
        shown = {shape(run) for run in runs}
        compared = libraries_compared_with([run for run in results["runs"] if shape(run) in shown])
        return lines + ["", f"{where(results)}. {compared}"]


def shown(key):
    """What pages call a setting: the sources and records call a step of the climb a rung."""
    return "kernel" if key == "rung" else key


def title(run, key, runs):
    """What a row is called. Pages with tables of rungs lie one folder below the lessons."""
    if key == "instead":
        return run["settings"].get(key, "in one kernel")
    if key == "rung" and run.get("rung"):
        step = step_of(run["rung"])
        return f"[{step.id}](../{step.kernel.as_posix()}) {step.label}"
    return row_title(run, runs) if key == "rung" else f"`{value(run, key)}`"


def details(runs, all_runs, key, with_gains=True, with_steps=False):
    """One row for each run: time, speed, and what the clock has to do with it. Gains are over the first of its size. Steps are
    those of k."""
    if key == "instead":
        return ways(runs)
    if key == "size":
        return against_libraries(runs, all_runs)
    if key == "launch":
        return launches(runs, all_runs)
    if key == "energy":
        return energy(runs)
    sizes = sorted({shape(run) for run in runs})
    header, rows = [shown(key), "µs", "TFLOP/s", "% library", "SM clock, MHz"], []
    if with_gains and len(runs) > len(sizes):
        header += ["× first", "× first, per clock"]
    header += [PREDICTED["clocks"]] * with_steps
    for size in sizes:
        here = [run for run in runs if shape(run) == size]
        library = fastest_library(all_runs, size)
        for run in here:
            name = title(run, key, all_runs) + (f", {shape_title(size)}" if len(sizes) > 1 else "")
            row = [name, f"{run['time_us_median']:.0f}", tflops(run), percent(run, library), clock(run)]
            rows.append(row + [step_clocks(run)] if with_steps else (row + gains(run, here[0]))[:len(header)])
    return markdown(*without_empty_columns(header, rows))


# The column that a unit is compared with.
PREDICTED = {"tflops": "TFLOP/s", "gain": "× first", "clocks": "clocks of a step"}


def step_clocks(run):
    """Of a step of the climb."""
    if not run.get("rung") or not run.get("clock_mhz"):
        return ""
    tile = lesson_pictures.Sources(ROOT).tile_shape(step_of(run["rung"]).kernel)
    return f"{clocks_of_step(run, tile):.0f}"


def ways(runs):
    """A kernel and the other ways to its result, for each size: their times, and what they move at least."""
    rows, first = [], {}
    for run in sorted(runs, key=shape):
        before = first.setdefault(shape(run), run)
        rows.append([f"{title(run, 'instead', runs)}, {shape_title(shape(run))}", f"{run['time_us_median']:.0f}",
                     tflops(run), clock(run), f"{run['time_us_median'] / before['time_us_median']:.2f}",
                     f"{run['global_bytes'] / 1e6:.0f}"])
    return markdown(["", "µs", "TFLOP/s", "SM clock, MHz", "× time of the first", "MB moved, at least"], rows)


def launches(runs, all_runs):
    """What a launch takes through a graph and by a call of its own, beside the library that is fastest by calls."""
    rows = []
    for run in runs:
        libraries = [other["eager_us"] for other in all_runs
                     if is_library(other) and shape(other) == shape(run) and "eager_us" in other]
        rows.append([shape_title(shape(run)), title(run, "rung", all_runs), f"{run['time_us_median']:.1f}",
                     f"{run['eager_us']:.1f}" if "eager_us" in run else "",
                     f"{min(libraries):.1f}" if libraries else ""])
    header = ["M×N×K", "kernel", "through a graph, µs", "by calls, µs", "fastest library by calls, µs"]
    return markdown(*without_empty_columns(header, rows))


def energy(runs):
    """What a launch takes in time, in cycles of each multiprocessor and in joules. Where the power
    limit lowers the clock, fewer joules are less time."""
    rows = []
    for run in sorted(runs, key=shape):
        name = library_title(run) if is_library(run) else title(run, "rung", runs)
        watts = run["joules"] / run["time_us_median"] * 1e6 if "joules" in run else run.get("power_watts")
        rows.append([f"{name}, {shape_title(shape(run))}", microseconds(run), clock(run),
                     f"{run['time_us_median'] * run['clock_mhz'] / 1000:.0f}" if "clock_mhz" in run else "",
                     f"{watts:.0f}" if watts else "", f"{run['joules']:.3g}" if "joules" in run else ""])
    return markdown(*without_empty_columns(["", "µs", "clock, MHz", "1000 cycles", "W", "J a launch"], rows))


def rung_title(run, runs):
    """"06.1", "any", and where a rung was run with several settings what tells this one from them: "any, pdl on"."""
    others = [other["settings"] for other in runs if rung_name(other) == rung_name(run)]
    differing = [f"{key} {chosen}" for key, chosen in run["settings"].items() if any(other.get(key) != chosen for other in others)]
    return ", ".join([rung_name(run), *differing])


def rung_name(run):
    """As the climb calls it. A kernel for any shape with settings of its own is no rung, but no other kernel either."""
    return run.get("rung") or number_of(run["lesson"])


def against_libraries(runs, all_runs):
    """For each size the fastest variant of the libraries, and each rung's speed in percent of it."""
    rungs, rows, ratios = sorted({rung_title(run, runs) for run in runs}), [], {}
    for size in dict.fromkeys(shape(run) for run in runs):
        here = {rung_title(run, runs): run for run in runs if shape(run) == size}
        library = fastest_library(all_runs, size)
        row = [shape_title(size), library_title(library), microseconds(library)]
        for rung in rungs:
            run = here.get(rung)
            row += [microseconds(run), f"{100 * run['tflops'] / library['tflops']:.1f} %"] if run else ["", ""]
            if run:
                ratios.setdefault(rung, []).append(run["tflops"] / library["tflops"])
        chosen = dict.fromkeys(run["choice"] for run in here.values() if "choice" in run)
        rows.append(row + [", ".join(chosen)])
    if len(rows) > 1:
        means = [cell for rung in rungs for cell in ("", f"{100 * geometric_mean(ratios[rung]):.1f} %")]
        rows.append(["geometric mean", "", ""] + means + [""])
    columns = [cell for rung in rungs for cell in (f"{rung}, µs", f"{rung}, % of it")]
    return markdown(["M×N×K", "fastest library", "µs"] + columns + ["chosen"], rows)


def microseconds(run):
    us = run["time_us_median"]
    return f"{us:.{1 if us < 100 else 0}f}"


def percent(run, library):
    if not library:
        return ""
    value = 100 * run["tflops"] / library["tflops"]
    return f"{value:.{1 if value < 10 else 0}f} %"


def clock(run):
    return f"{run['clock_mhz']:.0f}" if run.get("clock_mhz") else ""


def gains(run, first):
    """The gain in time, and what it would be if both had run at the same clock."""
    gain = run["tflops"] / first["tflops"]
    known = run.get("clock_mhz") and first.get("clock_mhz")
    return [f"{gain:.2f}", f"{gain * first['clock_mhz'] / run['clock_mhz']:.2f}" if known else ""]


def pivot(runs, row_key, column_key):
    """TFLOP/s by two settings."""
    row_values = list(dict.fromkeys(value(run, row_key) for run in runs))
    column_values = list(dict.fromkeys(value(run, column_key) for run in runs))
    by_place = {(value(run, row_key), value(run, column_key)): run for run in runs}
    if len(by_place) != len(runs):
        raise BadInput(f"rows={row_key} columns={column_key}: several runs share a place; narrow them down with only=")
    rows = []
    for name in row_values:
        places = [by_place.get((name, column)) for column in column_values]
        rows.append([f"`{name}`"] + [tflops(run) if run else "" for run in places])
    return markdown([f"TFLOP/s by {shown(row_key)}"] + [f"{column_key} {column}" for column in column_values], rows)


def tflops(run):
    return f"{run['tflops']:.{0 if run['tflops'] >= 100 else 1 if run['tflops'] >= 1 else 2}f}"


def origin(results):
    sizes = sorted({shape(run) for run in results["runs"]})
    places = ", ".join(map(shape_title, sizes)) if len(sizes) <= MOST_NAMED else f"{len(sizes)} shapes"
    interleaved = "interleaved with cuBLAS " if any(map(is_library, results["runs"])) else ""
    return f"{where(results)}; {interleaved}at {places}."


# Pictures whose request is drawn as a name, what it shows in words, and an SVG.
DRAWN = {
    "picture": idea_pictures.drawn,
    "sm": sm_picture.drawn,
    "concept": concept_pictures.drawn,
    "lesson_picture": lambda line, words: lesson_pictures.drawn(line, words, ROOT),
    "motion": lambda line, words: motion_picture.drawn(line, words, ROOT),
    "time": lambda line, words: time_picture.drawn(line, words, RESULTS),
}


def drawn_text(draw):
    return lambda line, words: ["![{1}](../docs/figures/{0}.svg)".format(*draw(line, words))]


def drawn_file(draw):
    """{path: SVG}"""
    def files(line, words):
        name, _, image = draw(line, words)
        return {FIGURES / f"{name}.svg": image}
    return files


FILLERS = {
    **{kind: drawn_text(draw) for kind, draw in DRAWN.items()},
    "ablation": lambda line, words: ablation_table(line, words, RESULTS),
    "attention": lambda line, words: attention_table(line, words, RESULTS),
    "table": lambda line, words: Request(line, words).table(),
    "timeline": lambda line, words: timeline_table(words, RESULTS / "traces"),
    "parts": lambda line, words: parts_table(line, words, RESULTS),
    "phases": lambda line, words: phase_table(words, RESULTS / "traces"),
    "profile": lambda line, words: profile_table(line, words, RESULTS, "profiles"),
    "order_profile": lambda line, words: profile_table(line, words, RESULTS, "profile_order"),
    "model": lambda line, words: model_table(line, words, RESULTS / "model"),
    "schedules": lambda line, words: schedule_table(line, words, RESULTS),
    "engines": lambda line, words: engines_table(line, words, RESULTS / "traces"),
    "hidden": lambda line, words: hidden_table(line, words, RESULTS),
    "sanitizers": lambda line, words: sanitizer_table(line, RESULTS),
    "tests": lambda line, words: gpu_test_table(line, words, RESULTS),
    "lab": lambda line, words: lab_table(line, words, RESULTS / "lab"),
    "snippet": lambda line, words: code_excerpt(line, words, ROOT),
    "exercises": lambda line, words: exercise_table(line, words, ROOT),
    "files": lambda line, words: file_table(line, words, RESULTS),
    "ratios": lambda line, words: ratio_text(line, words, RESULTS),
    "lanes": lambda line, words: lanes_text(line, words, RESULTS / "traces"),
    "sampled": lambda line, words: sampled_text(line, words, RESULTS),
    "climb": lambda line, words: climb_text(line, words, RESULTS),
    "steps": lambda line, words: climb_table(RESULTS),
    "cube": lambda line, words: cube_text(line, words, RESULTS),
    "changed": lambda line, words: changed_text(line, words, ROOT),
}
# Of these a picture is drawn, too, as a file of its own: {path: SVG}.
PICTURES = {
    **{kind: drawn_file(draw) for kind, draw in DRAWN.items()},
    "ratios": lambda line, words: ratio_pictures(line, words, RESULTS, FIGURES),
    "lanes": lambda line, words: lanes_pictures(line, words, RESULTS / "traces", FIGURES),
    "sampled": lambda line, words: sampled_pictures(line, words, RESULTS, FIGURES),
    "climb": lambda line, words: climb_pictures(line, words, RESULTS, FIGURES),
    "cube": lambda line, words: cube_pictures(line, words, RESULTS, FIGURES),
}
OPEN = re.compile(rf"<!-- ({'|'.join(FILLERS)}): (.*?) *-->\n")


def lines_for(line, kind, words):
    """What stands below the line of a request."""
    return FILLERS[kind](line, words)


def without_folds(words):
    return [word for word in words if word not in (FOLD, FOLD_ALL)]


def folded(lines, words):
    """With what stands below the table in a fold, or all of it, as the words of the request say. make_pages.py knows these two lines."""
    if FOLD_ALL in words and len(lines) > 1:
        return ["<details><summary>The table</summary>", "", *lines, "", "</details>"]
    if FOLD not in words or "" not in lines:  # nothing was recorded yet
        return lines
    at = max(i for i, text in enumerate(lines) if not text)
    return [*lines[:at], "", "<details><summary>Source</summary>", "", *lines[at + 1:], "", "</details>"]


def linked_from(page, table):
    """The table with the links of a page in one of the lessons' folders, as this page needs them."""
    try:
        depth = len(page.resolve().relative_to(ROOT).parts) - 1
    except ValueError:  # a page from elsewhere
        depth = 1
    return table.replace("](../", "](" + "../" * depth)


def with_lines(page, text):
    """The text, in which each link with a mistake's name as its title leads to the line where the mistake stands."""
    def place(link):
        path = page.parent / link[1]
        mistakes = planted(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if link[2] not in mistakes:
            raise BadInput(f"{page}: {link[1]} has no mistake {link[2]}")
        return f'({link[1]}#L{mistakes[link[2]][0]} "{link[2]}")'
    return TO_MISTAKE.sub(place, text)


def filled(page):
    """The page's text as it should be, and as it is."""
    old = read_page(page)
    new, rest = "", old
    while request := OPEN.search(rest):
        line = request[0].rstrip()
        _, found, behind = rest[request.end():].partition(CLOSE)
        if not found:
            raise BadInput(f"{page}: the table '{line}' has no {CLOSE}")
        words = request[2].split()
        lines = lines_for(line, request[1], without_folds(words))
        table = linked_from(page, "\n".join(folded(lines, words)))
        new += f"{rest[:request.start()]}{line}\n{table}\n{CLOSE}"
        rest = behind
    return with_lines(page, new + rest), old


def pictures(page):
    """{path: SVG} of all that the page's requests draw."""
    result = {}
    for request in OPEN.finditer(read_page(page)):
        if request[1] in PICTURES:
            result.update(PICTURES[request[1]](request[0].rstrip(), without_folds(request[2].split())))
    return result


def pages():
    folders = ["", "[0-9][0-9]_*/", "[0-9][0-9]_*/deeper/", "[0-9][0-9]_*/any_shape/", "common/", "docs/**/"]
    return sorted(page for folder in folders for page in ROOT.glob(f"{folder}*.md"))


def unshown(all_pages):
    """One line for each picture of docs/figures that no page shows, and for each that two pages describe in different words."""
    alts = {}
    for page in all_pages:
        for alt, name in SHOWN.findall(read_page(page)):
            alts.setdefault(name, {}).setdefault(alt, page)
    lines = [f"{path}: no page shows this picture" for path in sorted(FIGURES.glob("*.svg")) if path.name not in alts]
    for name, by_alt in alts.items():
        if len(by_alt) > 1:
            lines.append(f"{name}: is described in different words by {' and '.join(str(page) for page in by_alt.values())}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a page is out of date")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="only these (default: every page)")
    arguments = parser.parse_args()
    stale, drawn = [], {}
    for page in arguments.pages or pages():
        files = [(page, *filled(page))]
        for path, picture in pictures(page).items():
            if drawn.setdefault(path, picture) != picture:
                raise BadInput(f"{page}: {path.name} is another picture on an earlier page; give it another name")
            files.append((path, picture, path.read_text(encoding="utf-8") if path.exists() else None))
        for path, new, old in files:
            if new == old:
                continue
            stale.append(path)
            if not arguments.check:
                write_whole(path, new)
    verdict = "not up to date; run common/results/page_tables.py" if arguments.check else "updated"
    for path in stale:
        print(f"{path}: {verdict}")
    wrong = [] if arguments.pages else unshown(pages())
    for complaint in wrong:
        print(complaint)
    return 1 if wrong or arguments.check and stale else 0


if __name__ == "__main__":
    end_with(main, BadInput)
