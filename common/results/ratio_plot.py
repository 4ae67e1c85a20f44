"""How near a lesson comes to the libraries on many shapes: a picture, and the text beside it.

    <!-- ratios: experiments/any_matrix picture=any_matrix.svg fixed=16:20 -->
    <!-- end -->

The file is looked for in docs/results as page_tables.py says; it must hold one run of a lesson for each shape, perhaps a second
with ordinary launches (pdl=off), and runs of a library. The picture has a dot for each shape: the speed over that of the fastest variant of the libraries, over the arithmetic
intensity, that is flops for each byte if A and B are read once and C is written once. It is written to docs/figures, as SVG
that follows the reader's light or dark theme. The text has the geometric mean, the worst, and the five worst with what the
lesson chose for them.

With table=no the text is the number of shapes, the mean and the worst, for a page that links to another which has the rest.

With fixed=SEED:COUNT the shapes that records.py makes of this seed are told from the others, which were drawn on the day
of the recording: whoever worked on the lesson may have known the former, and cannot have known the latter.
"""
import html
import math
import re
from dataclasses import dataclass
from statistics import geometric_mean

from climb_table import BadInput, fastest_library, is_library, library_title, read_results, shape, shape_title
from idea_pictures import svg
from page_requests import markdown, parse_words
from record_files import newest
from records import random_shapes
from stale import where

WORST = 5  # shown in the table

HEIGHT = 410
LEFT, RIGHT, TOP, BOTTOM = 34, 380, 66, 326  # of the plot
STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .grid { stroke: #d1d9e0; }
    .one { stroke: #1f2328; stroke-width: 1.5; }
    .mean { stroke: #c7352b; stroke-dasharray: 6 4; stroke-width: 1.5; }
    .mean-text { fill: #c7352b; }
    .shape { fill: #1f77b4; fill-opacity: .8; stroke: #1f77b4; }
    .drawn { fill: none; stroke: #1f77b4; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .grid { stroke: #3a3c40; }
      .one { stroke: #e6edf3; }
      .mean { stroke: #ff7b72; }
      .mean-text { fill: #ff7b72; }
      .shape { fill: #5aa9e6; stroke: #5aa9e6; }
      .drawn { stroke: #5aa9e6; }
    }"""


@dataclass
class Point:
    """A shape, as the lesson's run and the fastest library's have it."""
    run: dict
    fastest: dict

    @property
    def ratio(self):
        return self.run["tflops"] / self.fastest["tflops"]

    @property
    def intensity(self):
        m, n, k = shape(self.run)
        return 2 * m * n * k / (2 * (m * k + k * n + m * n))  # elements have two bytes


def is_ordinary(run):
    """Was it launched without programmatic dependent launch, where the lesson would have chosen that?"""
    return run["settings"].get("pdl") == "off"


def points_of(path, results, ordinary=False):
    """@throws BadInput"""
    runs, points = results["runs"], {}
    for run in runs:
        if is_library(run) or is_ordinary(run) != ordinary:
            continue
        library = fastest_library(runs, shape(run))
        if library is None:
            raise BadInput(f"{path}: no library ran {shape_title(shape(run))}")
        if shape(run) in points:
            raise BadInput(f"{path}: {shape_title(shape(run))} has several runs; a dot needs one")
        points[shape(run)] = Point(run, library)
    if not points and not ordinary:
        raise BadInput(f"{path}: holds libraries alone")
    return list(points.values())


class Request:
    """What a line `<!-- ratios: FILE picture=NAME -->` asks for."""

    def __init__(self, line, words, results_folder):
        name, *words = words or [""]
        values = parse_words(line, words, ("picture", "fixed", "table"))[0]
        self.picture, fixed = values.get("picture"), values.get("fixed", "")
        if values.get("table", "no") != "no":
            raise BadInput(f"{line}: table={values['table']}: only table=no means something")
        self.has_table = "table" not in values
        if not name or not self.picture:
            raise BadInput(f"{line}: needs a result file and picture=NAME.svg")
        if fixed and not re.fullmatch(r"\d+:\d+", fixed):
            raise BadInput(f"{line}: fixed={fixed} is not SEED:COUNT")
        self.fixed = set(random_shapes(*map(int, fixed.split(":")))) if fixed else None
        self.path = newest(results_folder, name)
        if self.path:
            self.results = read_results(self.path)
            self.points = points_of(self.path, self.results)
            self.ordinary = points_of(self.path, self.results, ordinary=True)

    def recorded(self):
        return self.path is not None

    def halves(self):
        """The points of the fixed shapes, and the others; without fixed= all are in the first."""
        known = [point for point in self.points if self.fixed is None or shape(point.run) in self.fixed]
        return known, [point for point in self.points if point not in known]


def ratio_text(line, words, results_folder):
    """The lines below the request."""
    request = Request(line, words, results_folder)
    if not request.recorded():
        return ["Not recorded yet."]
    results, points = request.results, sorted(request.points, key=lambda point: point.ratio)
    ratios = [point.ratio for point in points]
    above = sum(ratio > 1 for ratio in ratios)
    origin = f"{where(results)}."
    rows = [[shape_title(shape(point.run)), f"{point.intensity:.0f}", point.run.get("choice", ""),
             microseconds(point.run), library_title(point.fastest), microseconds(point.fastest), f"{point.ratio:.2f}"]
            for point in points[:WORST]]
    known, drawn_later = request.halves()
    apart = (f" ({mean_of(known)} over the {len(known)} from a fixed seed, {mean_of(drawn_later)} over the "
             f"{len(drawn_later)} from a seed of that day)") if known and drawn_later else ""
    worst = f"worst {ratios[0]:.2f}"
    picture = (f"![Speed over that of the fastest library at {len(points)} shapes, over their arithmetic intensity: geometric mean "
               f"{mean_of(points)}, {worst}](../docs/figures/{request.picture})")
    launches = (f"With ordinary launches the mean is {mean_of(request.ordinary)} and the worst "
                f"{min(point.ratio for point in request.ordinary):.2f}. ") if request.ordinary else ""
    if not request.has_table:
        return [picture, "", f"{len(points)} shapes: geometric mean **{mean_of(points)}**, {worst}."]
    return [picture, "", f"{len(points)} shapes, each against the fastest of four library variants in the same interleaved run: "
            f"geometric mean **{mean_of(points)}**{apart}, {worst}, {above or 'none'} above 1.00. {launches}The worst:", "",
            *markdown(["M×N×K", "flops a byte", "plan", "µs", "fastest library", "µs", "ratio"], rows), "", origin]


def mean_of(points):
    return f"{geometric_mean(point.ratio for point in points):.2f}"


def microseconds(run):
    us = run["time_us_median"]
    return f"{us:.{1 if us < 100 else 0}f}"


def ratio_pictures(line, words, results_folder, figures_folder):
    """{path: SVG} of the request's picture; nothing before it was recorded."""
    request = Request(line, words, results_folder)
    return {figures_folder / request.picture: drawn(request)} if request.recorded() else {}


def ticks(least, most):
    """1, 2, 5, 10, 20, ... from one at or below the least to one at or above the most."""
    values = [factor * 10**power for power in range(7) for factor in (1, 2, 5)]
    first = max((i for i, value in enumerate(values) if value <= least), default=0)
    last = min((i for i, value in enumerate(values) if value >= most), default=len(values) - 1)
    return values[first:max(last, first + 1) + 1]


def drawn(request):
    points, results = request.points, request.results
    ratios = [point.ratio for point in points]
    mean = geometric_mean(ratios)
    columns = ticks(min(point.intensity for point in points), max(point.intensity for point in points))
    lowest, highest = min(math.floor(10 * min(ratios)), 8), max(math.ceil(10 * max(ratios)), 11)  # in tenths

    def x(intensity):
        return LEFT + (RIGHT - LEFT) * math.log(intensity / columns[0]) / math.log(columns[-1] / columns[0])

    def y(ratio):
        return BOTTOM - (BOTTOM - TOP) * (10 * ratio - lowest) / (highest - lowest)

    def across(ratio, style):
        return f'<line class="{style}" x1="{LEFT}" y1="{y(ratio):.1f}" x2="{RIGHT}" y2="{y(ratio):.1f}"/>'

    shapes, step = [], 1 if highest - lowest <= 12 else 2
    for tenths in range(lowest, highest + 1, step):
        shapes += [across(tenths / 10, "grid"),
                   f'<text x="{LEFT - 8}" y="{y(tenths / 10) + 4:.1f}" text-anchor="end">{tenths / 10:.1f}</text>']
    for intensity in columns:
        shapes += [f'<line class="grid" x1="{x(intensity):.1f}" y1="{TOP}" x2="{x(intensity):.1f}" y2="{BOTTOM}"/>',
                   f'<text x="{x(intensity):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{intensity}</text>']
    shapes += [across(1, "one"), across(mean, "mean")]
    known, drawn_later = request.halves()
    for point in sorted(points, key=lambda point: shape(point.run)):
        style = "drawn" if point in drawn_later else "shape"
        words = f"{shape_title(shape(point.run))}: {point.ratio:.2f}"
        if "choice" in point.run:
            words += f", {point.run['choice']}"
        shapes.append(f'<circle class="{style}" cx="{x(point.intensity):.1f}" cy="{y(point.ratio):.1f}" r="4">'
                      f"<title>{html.escape(words)}</title></circle>")
    if known and drawn_later:
        for left, style, words in ((12, "shape", "fixed seed"), (110, "drawn", "seed of that day")):
            shapes += [f'<circle class="{style}" cx="{left}" cy="{TOP - 20}" r="4"/>',
                       f'<text x="{left + 10}" y="{TOP - 16}">{words}</text>']
    shapes += [f'<text x="6" y="{TOP - 46}">speed over that of the fastest library</text>',
               f'<text class="mean-text" x="{RIGHT}" y="{TOP - 16}" text-anchor="end">geometric mean {mean:.2f}</text>',
               f'<text x="{(LEFT + RIGHT) / 2:.0f}" y="{BOTTOM + 42}" text-anchor="middle">flops for each byte of A, B and C</text>',
               f'<text x="{(LEFT + RIGHT) / 2:.0f}" y="{BOTTOM + 64}" text-anchor="middle">'
               f"{html.escape(results['gpu'])}, {html.escape(results['date'])}</text>"]
    return svg(HEIGHT, f"Speed over that of the fastest library at {len(points)} shapes", shapes, STYLE)
