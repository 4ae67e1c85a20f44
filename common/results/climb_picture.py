"""The climb as a picture: a bar for each step, beside the fastest library.

    <!-- climb: picture=climb.svg sizes=4096,5000,256x1024x8192 -->
    <!-- end -->

One panel for each size, 4096 for the cube, of the newest result file in docs/results that is named here. A bar is a step's speed; the number in
brackets is its gain over the step that it builds on, which is named where it is not the one above. The dashed line is the fastest variant of
the libraries in the same run. It is written to docs/figures, as SVG that follows the reader's light or dark theme.
"""
import html
import re

from climb_table import BadInput, Climb, fastest_library, library_title, read_results, shape_title
from idea_pictures import svg, text
from page_requests import parse_words
from stale import dated

WIDTH, LABELS, GAP = 900, 232, 18  # pixels; LABELS: of the column with the rungs' names
ROW, BAR, TOP = 20, 16, 40
STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .inside { font-size: 12px; fill: #ffffff; }
    .bar { fill: #1f77b4; }
    .best { fill: #2a8c4a; }
    .fastest { stroke: #c7352b; stroke-dasharray: 6 4; stroke-width: 1.5; }
    .fastest-text { fill: #c7352b; font-size: 12px; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .inside { fill: #0d1117; }
      .bar { fill: #5aa9e6; }
      .best { fill: #57c27c; }
      .fastest { stroke: #ff7b72; }
      .fastest-text { fill: #ff7b72; }
    }"""


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
        for cube in self.shapes:
            if cube not in self.climb.shapes or fastest_library(self.climb.runs, cube) is None:
                raise BadInput(f"{line}: {self.path.name} has no climb beside a library at {shape_title(cube)}")


def name_of(climb, number, above):
    """above: the rung of the row above, or None."""
    base = climb.base(number)
    return f"{number} {climb.steps[number].label}" + (f", from {base}" if above and base and base != above else "")


def climb_text(line, words, results_folder):
    """The lines below the request."""
    request = Request(line, words, results_folder)
    if request.path is None:
        return ["Not recorded yet."]
    results, climb = request.results, request.climb
    fastest = {cube: max(run["tflops"] for rung in climb.rungs if (run := climb.by_place.get((rung, cube))))
               for cube in request.shapes}
    reached = " and ".join(f"{fastest[cube]:.0f} of {fastest_library(climb.runs, cube)['tflops']:.0f} at {shape_title(cube)}"
                           for cube in request.shapes)
    return [f"![The climb: TFLOP/s of each step beside the fastest library; the fastest step reaches {reached}]"
            f"(../docs/figures/{request.picture})", "",
            f"TFLOP/s, 10¹² floating-point operations a second, of each step. In brackets, the gain over the step that it builds on. {results['gpu']}, {dated(results)}."]


def climb_pictures(line, words, results_folder, figures_folder):
    """{path: SVG} of the request's picture; nothing before it was recorded."""
    request = Request(line, words, results_folder)
    return {} if request.path is None else {figures_folder / request.picture: drawn(request)}


def drawn(request):
    climb, rungs = request.climb, request.climb.rungs
    width = (WIDTH - LABELS - GAP * len(request.shapes)) / len(request.shapes)
    fastest = {cube: fastest_library(climb.runs, cube) for cube in request.shapes}
    most = max(run["tflops"] for run in climb.runs)
    height = TOP + ROW * len(rungs) + 30
    shapes = [text(LABELS - 10, TOP + ROW * row + 14, html.escape(name_of(climb, rung, above)), "end")
              for row, (rung, above) in enumerate(zip(rungs, [None, *rungs]))]
    for panel, cube in enumerate(request.shapes):
        left = LABELS + panel * (width + GAP)
        here = [climb.by_place.get((rung, cube)) for rung in rungs]
        line, bottom = left + width * fastest[cube]["tflops"] / most, TOP + ROW * len(rungs)
        best = max((run["tflops"] for run in here if run), default=0)
        gaps = []  # rows in which the line would cross a number
        shapes.append(text(left, 16, f"{shape_title(cube)}, TFLOP/s", "start"))
        for row, (rung, run) in enumerate(zip(rungs, here)):
            if not run:
                continue
            length, y = width * run["tflops"] / most, TOP + ROW * row
            style, gain = "best" if run["tflops"] == best else "bar", climb.gain(rung, cube)
            label = f"{run['tflops']:.0f}" + (f" ({gain:.2f}×)" if gain else "")
            shapes.append(f'<rect class="{style}" x="{left:.1f}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>')
            inside, beside = length > 90, left + length + 6
            if not inside and beside - 4 < line < beside + 7 * len(label):
                gaps.append(row)
            shapes.append(f'<text class="{"inside" if inside else "small"}" x="{left + length - 6 if inside else beside:.1f}" '
                          f'y="{y + 13}" text-anchor="{"end" if inside else "start"}">{label}</text>')
        y = TOP - 8
        for end in [*(TOP + ROW * row for row in gaps), bottom]:
            if end > y:
                shapes.append(f'<line class="fastest" x1="{line:.1f}" y1="{y}" x2="{line:.1f}" y2="{end}"/>')
            y = end + ROW
        shapes.append(f'<text class="fastest-text" x="{line:.1f}" y="{bottom + 16}" text-anchor="end">'
                      f'{html.escape(library_title(fastest[cube]).split(",")[0])}: {fastest[cube]["tflops"]:.0f}</text>')
    return svg(height, "The climb", shapes, STYLE, WIDTH)
