"""The climb as a picture: a bar for each step, beside the fastest library.

    <!-- climb: picture=climb.svg sizes=4096,5000,256x1024x8192 -->
    <!-- end -->

The newest result file in docs/results has these sizes, 4096 for the cube. At the first size a bar is a step's speed, and beside it stands
its gain over the kernel that it builds on, which its name has in brackets where it is not the one above. The other sizes have a column of speeds. Where a step
does not pay, and lessons 05 and 06 run the kernel of an earlier step, its place says so, and its speed is pale. Of the others those are marked that are as
fast as the fastest, within what counts as no gain. The dashed line and the last row are the fastest variant of the libraries in the same run. It is written to
docs/figures, as SVG that follows the reader's light or dark theme.
"""
import html
import re

from climb_table import BadInput, Climb, fastest_library, read_results, shape_title
from experiment_tables import MULTIPROCESSORS
from idea_pictures import svg, text
from lattice import NOISE
from page_requests import parse_words
from stale import dated

LABELS, BARS, GAINS, COLUMNS = 164, 92, 304, (352, 398)  # pixels: where labels end, how long a bar is, where the other columns end
ROW, BAR, TOP = 19, 16, 68
CLUSTERS_OF_TWO, CLUSTERS_OF_FOUR = 66, 30  # that an H200 holds: docs/decisions.md, 8
STYLE = """
    text { font: 12px sans-serif; fill: #1f2328; }
    .inside { fill: #ffffff; }
    .strong { font-weight: bold; }
    .most { font-weight: bold; fill: #1a7f37; }
    .bar { fill: #1f77b4; }
    .best { fill: #1f7f3e; }
    .same { fill: #d1d9e0; }
    .pale { fill: #4d5660; }
    .fastest { stroke: #c7352b; stroke-dasharray: 6 4; stroke-width: 1.5; }
    .fastest-text { fill: #c7352b; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .inside { fill: #0d1117; }
      .bar { fill: #5aa9e6; }
      .best, .most { fill: #57c27c; }
      .same { fill: #3d444d; }
      .pale { fill: #a9b1ba; }
      .fastest { stroke: #ff7b72; }
      .fastest-text { fill: #ff7b72; }
    }"""


def kernel_of(number, cube):
    """The id of the step whose kernel runs: multicast_pays, split_pays and wide_tile_pays of lessons 05 and 06, on an H200."""
    m, n, k = cube

    def tiles(rows, columns):
        return -(-m // rows) * -(-n // columns)

    if number in ("06.3", "06") and k > 64 and tiles(256, 128) <= CLUSTERS_OF_FOUR:
        return number
    if number.startswith("06") and (n % 64 or k % 64) and tiles(256, 256) >= CLUSTERS_OF_TWO:
        return "06.1"
    if number in ("05.3", "05") or number.startswith("06"):
        return (number if number.startswith("05") else "05") if tiles(128, 256) >= MULTIPROCESSORS else "05.2"
    return number


def speeds_of_own_kernels(climb, cube):
    return {rung: run["tflops"] for rung in climb.rungs if (run := climb.by_place.get((rung, cube))) and kernel_of(rung, cube) == rung}


class Request:
    def __init__(self, line, words, results_folder):
        values, only = parse_words(line, words, ("picture", "sizes"))
        if only or not {"picture", "sizes"} <= values.keys():
            raise BadInput(f"{line}: needs picture= and sizes=, and nothing else")
        if not re.fullmatch(r"[\w-]+\.svg", values["picture"]):
            raise BadInput(f"{line}: picture={values['picture']}: must be the name of an SVG file")
        size = r"\d+(x\d+x\d+)?"
        if not re.fullmatch(rf"{size}(,{size})*", values["sizes"]):
            raise BadInput(f"{line}: sizes={values['sizes']}: must be sizes, as 4096,256x1024x8192")
        self.picture = values["picture"]
        self.path = max(results_folder.glob("*.json"), default=None)
        if self.path is None:
            return
        self.results = read_results(self.path)
        self.climb = Climb(self.results["runs"])
        extents = [tuple(map(int, size.split("x"))) for size in values["sizes"].split(",")]
        self.shapes = [size * 3 if len(size) == 1 else size for size in extents]
        if len(self.shapes) > 1 + len(COLUMNS):
            raise BadInput(f"{line}: sizes={values['sizes']}: there is room for {1 + len(COLUMNS)} sizes")
        for cube in self.shapes:
            if cube not in self.climb.shapes or fastest_library(self.climb.runs, cube) is None:
                raise BadInput(f"{line}: {self.path.name} has no climb beside a library at {shape_title(cube)}")


def name_of(climb, number, above):
    """above: the rung of the row above, or None."""
    base = climb.base(number)
    return f"{number} {f'({base}) ' if above and base and base != above else ''}{climb.steps[number].label}"


def climb_text(line, words, results_folder):
    """The lines below the request."""
    request = Request(line, words, results_folder)
    if request.path is None:
        return ["Not recorded yet."]
    results, climb = request.results, request.climb
    fastest = {cube: max(speeds_of_own_kernels(climb, cube).values()) for cube in request.shapes}
    reached = " and ".join(f"{fastest[cube]:.0f} of {fastest_library(climb.runs, cube)['tflops']:.0f} at {shape_title(cube)}"
                           for cube in request.shapes)
    return [f"![The climb: TFLOP/s of each step beside the fastest library; the fastest kernel reaches {reached}]"
            f"(../docs/figures/{request.picture})", "",
            f"TFLOP/s, 10¹² floating-point operations a second, of each kernel. Gain: over the row above, or over the row in brackets. {results['gpu']}, {dated(results)}."]


def climb_pictures(line, words, results_folder, figures_folder):
    """{path: SVG} of the request's picture; nothing before it was recorded."""
    request = Request(line, words, results_folder)
    return {} if request.path is None else {figures_folder / request.picture: drawn(request)}


def title_lines(cube):
    """Of a narrow column."""
    return shape_title(cube).replace("×", "× ").split()


def drawn(request):
    climb, rungs = request.climb, request.climb.rungs
    fastest = {cube: fastest_library(climb.runs, cube) for cube in request.shapes}
    here = {cube: {rung: run["tflops"] for rung in rungs if (run := climb.by_place.get((rung, cube)))} for cube in request.shapes}
    first, *others = request.shapes
    best = {cube: [rung for rung, speed in own.items() if speed * (1 + NOISE) >= max(own.values())]
            for cube in request.shapes if (own := speeds_of_own_kernels(climb, cube))}
    scale, bottom = BARS / max(fastest[first]["tflops"], *here[first].values()), TOP + ROW * len(rungs)
    line = LABELS + scale * fastest[first]["tflops"]
    shapes = [text(LABELS, TOP - 36, "TFLOP/s at", "start"), text(LABELS, TOP - 20, shape_title(first), "start", "strong"), text(GAINS, TOP - 20, "gain", "end")]
    below = TOP - 10
    for row, (rung, above) in enumerate(zip(rungs, [None, *rungs])):
        y = TOP + ROW * row
        shapes.append(text(LABELS - 6, y + 13, html.escape(name_of(climb, rung, above)), "end"))
        if speed := here[first].get(rung):
            length, number, gain = scale * speed, f"{speed:.0f}", climb.gain(rung, first)
            same = kernel_of(rung, first) != rung
            gain = f"= {kernel_of(rung, first)}" if same else f"{gain:.2f}×" if gain else ""
            style, inside = "same" if same else "best" if rung in best[first] else "bar", length > BARS / 3
            beside = LABELS + length + 5
            shapes += [f'<rect class="{style}" x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>',
                       text(round(beside - 10 if inside else beside, 1), y + 13, number, *(("end", "pale" if same else "inside") if inside else ("start",))),
                       text(GAINS, y + 13, gain, "end")]
            if GAINS - 7 * len(gain) < line or not inside and beside - 4 < line < beside + 7 * len(number):  # the line has a gap for words
                if y > below:
                    shapes.append(f'<line class="fastest" x1="{line:.1f}" y1="{below}" x2="{line:.1f}" y2="{y}"/>')
                below = y + ROW
    for right, cube in zip(COLUMNS, others):
        lines = title_lines(cube)
        shapes += [text(right, TOP - 20 - 16 * (len(lines) - 1 - i), words, "end", "strong") for i, words in enumerate(lines)]
        shapes += [text(right, TOP + ROW * rungs.index(rung) + 13, f"{speed:.0f}", "end", "pale" if kernel_of(rung, cube) != rung else "most" if rung in best[cube] else "")
                   for rung, speed in here[cube].items()]
    shapes.append(f'<line class="fastest" x1="{line:.1f}" y1="{below}" x2="{line:.1f}" y2="{bottom + 2}"/>')
    shapes.append(text(LABELS - 6, bottom + 16, "fastest library", "end", "fastest-text"))
    shapes += [text(right, bottom + 16, f"{fastest[cube]['tflops']:.0f}", "end", "fastest-text")
               for right, cube in zip((round(line, 1), *COLUMNS), request.shapes)]
    if not any(kernel_of(rung, cube) != rung for cube in request.shapes for rung in here[cube]):
        return svg(bottom + 24, "The climb", shapes, STYLE)
    shapes += [text(2, bottom + 40 + 16 * i, words, "start", "pale") for i, words in enumerate((
        "Pale: this row's own kernel does not pay here, so the kernel of an", "earlier row runs (= 05: that of row 05). Differences are scatter."))]
    return svg(bottom + 64, "The climb", shapes, STYLE)
