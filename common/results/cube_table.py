"""Roles, a ring, blocks on a multiprocessor: what each brings where all else is equal.

    <!-- cube: sizes=4096,5000,8192 -->
    <!-- cube: sizes=4096,5000,8192 table=no -->
    <!-- cube: sizes=4096 table=steps predicted=1724,862,575,512,862,512 -->
    <!-- end -->

table=steps compares the clocks of a K step, of which an SM does one after the other, with what the page predicted with roles, says by
how much that is off and what roles save, and has no picture and no source: it stands below the picture. With without=, six numbers
more, a page predicts the kernels without roles, too. The newest experiment `cube` as a picture, docs/figures/cube.svg, that follows the reader's
light or dark theme, and as a table: a row for kernels without a loader, where a computing thread asks TMA, and one for roles.
"""
import math
import re

from climb_table import BadInput, fastest_library, is_library, read_results, shape, shape_title, speed
from idea_pictures import PHONE, svg, text
from lesson_pictures import Sources
from page_requests import markdown, off_by, parse_words
from record_files import newest
from stale import dated

PLACES = [("1", "1"), ("1", "2"), ("1", "3"), ("1", "4"), ("2", "1"), ("2", "2")]  # blocks on a multiprocessor, slots
ROLES = {"off": "a computing thread asks TMA", "on": "roles"}
TILE = "05_ws_double_buffer/steps/1_ring.cuh"  # has the tile of all these kernels
MULTIPROCESSORS = 132  # of an H200
STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .inside { font-size: 12px; fill: #ffffff; }
    .off { fill: #6e7781; }
    .on { fill: #1f7f3e; }
    .fastest { stroke: #c7352b; stroke-dasharray: 6 4; stroke-width: 1.5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .inside { fill: #0d1117; }
      .off { fill: #7d868f; }
      .on { fill: #57c27c; }
      .fastest { stroke: #ff7b72; }
    }"""


class Cube:
    def __init__(self, line, words, results_folder):
        values, only = parse_words(line, words, ("sizes", "table", "predicted", "without"))
        if only or not re.fullmatch(r"\d+(,\d+)*", values.get("sizes", "")):
            raise BadInput(f"{line}: needs sizes=, as 4096,5000")
        self.table = values.get("table")
        self.predicted = {roles: values[word].split(",") if word in values else [] for roles, word in (("on", "predicted"), ("off", "without"))}
        given = values.keys() & {"predicted", "without"}
        allowed = {"steps": ({"predicted"}, {"predicted", "without"}), "no": (set(),), None: (set(),)}.get(self.table, ())
        if given not in allowed or any(len(values[word].split(",")) != len(PLACES) for word in given):
            raise BadInput(f"{line}: table= may be no, or steps with {len(PLACES)} numbers in predicted=, and perhaps in without=")
        path = newest(results_folder, "experiments/cube")
        self.results = read_results(path) if path else None
        self.cubes = [(int(size),) * 3 for size in values["sizes"].split(",")]
        self.by_place = {}
        if path is None:
            return
        for run in self.results["runs"]:
            if not is_library(run):
                settings = run["settings"]
                self.by_place[shape(run), settings["roles"], settings["blocks"], settings["slots"]] = run
        for cube in self.cubes:
            if any((cube, roles, *place) not in self.by_place for roles in ROLES for place in PLACES):
                raise BadInput(f"{line}: {path.name} has no cube at {shape_title(cube)}")

    def tflops(self, cube, roles, place):
        return self.by_place[cube, roles, *place]["tflops"]


def steps_text(cube, root):
    """A row for each place: the clocks of a step of one SM, predicted and measured."""
    tile = Sources(root).tile_shape(TILE)
    header = [f"clocks of a step at {shape_title(cube.cubes[0])}"]
    rows = [[place_title(place)] for place in PLACES]
    measured = {roles: [clocks_of_step(cube.by_place[cube.cubes[0], roles, *place], tile) for place in PLACES] for roles in ROLES}
    for roles in ("on", "off"):
        predictions = cube.predicted[roles]
        header += ["predicted", ROLES[roles], "off by"] if predictions else [ROLES[roles]]
        for row, predicted, clocks in zip(rows, predictions or [None] * len(PLACES), measured[roles]):
            row += [predicted, f"{clocks:.0f}", off_by(predicted, clocks)] if predictions else [f"{clocks:.0f}"]
    if not cube.predicted["off"]:
        header.append("roles save")
        for row, on, off in zip(rows, measured["on"], measured["off"]):
            row.append(f"{100 * (1 - on / off):.0f} %".replace("-", "−"))
    return markdown(header, rows)


def clocks_of_step(run, tile):
    """Clocks of a K step of a tile of this shape, (m, n, k), of which the busiest multiprocessor does one after the other."""
    m, n, k = tile
    tiles = math.ceil(run["m"] / m) * math.ceil(run["n"] / n)
    steps = math.ceil(tiles / MULTIPROCESSORS) * math.ceil(run["k"] / k)
    return run["time_us_median"] * run["clock_mhz"] / steps


def slots(count):
    return f"{count} slot" + ("s" if count != "1" else "")


def place_title(place):
    blocks, count = place
    return slots(count) + (", 2 blocks an SM" if blocks == "2" else "")


def cube_text(line, words, results_folder):
    """The lines below the request."""
    cube = Cube(line, words, results_folder)
    if cube.results is None:
        return ["Not recorded yet."]
    if cube.table == "steps":
        return steps_text(cube, results_folder.parents[1])
    facts = cube.results
    picture = "![What a ring, roles and a second block on a multiprocessor bring](../docs/figures/cube.svg)"
    source = f"{facts['gpu']}, {dated(facts)}, commit `{facts['commit']}`; one interleaved run at each size."
    if cube.table == "no":
        return [picture, "", source]
    header = ["TFLOP/s", *map(place_title, PLACES), "fastest library"]
    rows = []
    for sizes in cube.cubes:
        library = fastest_library(cube.results["runs"], sizes)
        for roles, title in ROLES.items():
            rows.append([f"{shape_title(sizes)}, {title}"] + [speed(cube.by_place[sizes, roles, *place]) for place in PLACES]
                        + [speed(library)])
    first = cube.cubes[0]
    gains = [f"{cube.tflops(first, 'on', place) / cube.tflops(first, 'off', place):.2f}×" for place in PLACES]
    ring, second = (cube.tflops(first, "on", place) / cube.tflops(first, "on", PLACES[0]) for place in (PLACES[3], PLACES[4]))
    return [picture, "", *markdown(header, rows), "",
            f"At {shape_title(first)} roles bring {', '.join(gains)}, in the order of the picture; a ring of four instead of one slot "
            f"{ring:.2f}×, a second block on the multiprocessor {second:.2f}×, both with roles. {source}"]


def cube_pictures(line, words, results_folder, figures_folder):
    """{path: SVG}"""
    cube = Cube(line, words, results_folder)
    return {figures_folder / "cube.svg": drawn(cube)} if cube.results and cube.table != "steps" else {}


def beside_the_line(begin, length, y, words, line):
    """The number of a bar: behind the bar, or at its end inside it where the library's line would cross the number."""
    at, wide = begin + length + 4, 8 * len(words)
    if line is None or not at - 4 < line < at + wide:
        return [text(at, y, words, "start", "small")]
    return [text(begin + length - 4, y, words, "end", "inside")]


def drawn(cube):
    left, gap, row = 110, 6, 34
    panel = (PHONE - left - gap * len(cube.cubes)) / len(cube.cubes)
    libraries = {sizes: fastest_library(cube.results["runs"], sizes) for sizes in cube.cubes}
    most = max([run["tflops"] for run in cube.by_place.values()] + [run["tflops"] for run in libraries.values() if run])
    top, bottom = 30, 30 + row * len(PLACES)
    shapes = [text(left - 10, 18, "TFLOP/s", "end", "small")]
    for i, (blocks, count) in enumerate(PLACES):
        shapes.append(text(left - 10, top + row * i + 18, slots(count) + (", 2 blocks" if blocks == "2" else ""), "end", "small"))
    for i, sizes in enumerate(cube.cubes):
        begin = left + i * (panel + gap)
        x = begin + (panel - 28) * libraries[sizes]["tflops"] / most if libraries[sizes] else None
        shapes.append(text(begin, 18, shape_title(sizes), "start"))
        for j, place in enumerate(PLACES):
            for k, roles in enumerate(ROLES):
                speed_here = cube.tflops(sizes, roles, place)
                length, y = (panel - 28) * speed_here / most, top + row * j + 15 * k
                shapes += [f'<rect class="{roles}" x="{begin:.1f}" y="{y}" width="{length:.1f}" height="13"/>',
                           *beside_the_line(begin, length, y + 11, f"{speed_here:.0f}", x)]
        if x:
            shapes += [f'<line class="fastest" x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{bottom}"/>',
                       text(x, bottom + 14, f"{libraries[sizes]['tflops']:.0f}", style="small")]
    y = bottom + 30
    for down, style, words in ((0, "off", ROLES["off"]), (20, "on", f"{ROLES['on']}: a loader asks TMA")):
        shapes += [f'<rect class="{style}" x="8" y="{y + down}" width="13" height="13"/>', text(26, y + down + 11, words, "start", "small")]
    shapes += [f'<line class="fastest" x1="234" y1="{y + 7}" x2="264" y2="{y + 7}"/>', text(270, y + 11, "fastest library", "start", "small")]
    return svg(bottom + 74, "Roles, a ring, a second block", shapes, STYLE)
