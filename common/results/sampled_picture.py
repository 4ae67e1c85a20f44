"""How busy tensor cores and L2 were over the time of a launch, as curves: the newest record that sampled.py wrote.

    <!-- sampled: picture=over_time.svg -->
    <!-- end -->

A panel for each launch, at one scale. The picture is written to docs/figures, as SVG that follows the reader's light or dark theme.
"""
import json
import re
from statistics import correlation, mean, median, pstdev

from climb_table import BadInput
from idea_pictures import svg, text
from page_requests import markdown, parse_words
from record_files import newest
from stale import dated

WIDTH, LEFT, RIGHT = 400, 34, 392  # pixels
PANEL, TITLE, GAP, AXIS = 84, 24, 12, 24
STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .edge { stroke: #d1d9e0; }
    .tensor { fill: none; stroke: #2a8c4a; stroke-width: 1.5; }
    .l2 { fill: none; stroke: #1f77b4; stroke-width: 1.5; stroke-dasharray: 5 3; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .edge { stroke: #3a3c40; }
      .tensor { stroke: #57c27c; }
      .l2 { stroke: #5aa9e6; }
    }"""
NAMES = {"tensor": "tensor cores", "l2": "L2"}
EDGE = 0.1  # of the launch, at its begin and at its end, that the table leaves out
STEADY = 0.2  # of the median, by which samples in the table differ from it at most


def recorded(results_folder):
    path = newest(results_folder, "profiles/sampled")
    return None if path is None else json.loads(path.read_text(encoding="utf-8"))


def length_of(launch):
    return launch["us"][-1]


def picture_of(line, words):
    values, only = parse_words(line, words, ("picture",))
    if only or not re.fullmatch(r"[\w-]+\.svg", values.get("picture", "")):
        raise BadInput(f"{line}: needs picture=, the name of an SVG file, and nothing else")
    return values["picture"]


def steady(launch):
    """The percentages of both, a list each: between the first and the last tenth of the launch, where the tensor cores are about as
    busy as usual. At the edges of waves, where blocks end and others begin together, they are not."""
    whole = length_of(launch)
    both = [(tensor, l2) for at, tensor, l2 in zip(launch["us"], launch["tensor"], launch["l2"]) if EDGE * whole <= at <= (1 - EDGE) * whole]
    usual = median(tensor for tensor, _ in both)
    return zip(*((tensor, l2) for tensor, l2 in both if abs(tensor - usual) <= STEADY * usual))


def title_of(launch):
    settings = ", ".join(f"{name} {chosen}" for name, chosen in sorted(launch["settings"].items()))
    return f"{launch['lesson']}, {settings}"


def sampled_text(line, words, results_folder):
    """The lines below the request."""
    picture, results = picture_of(line, words), recorded(results_folder)
    if results is None:
        return ["Not recorded yet."]
    rows = []
    for launch in results["launches"]:
        both = list(steady(launch))
        rows.append([title_of(launch), *(f"{mean(one):.0f} ± {pstdev(one):.1f}" for one in both), f"{correlation(*both):+.2f}"])
    size = results["launches"][0]
    return [f"![How busy tensor cores and L2 are over the time of a launch](../docs/figures/{picture})", "",
            *markdown(["lesson"] + [f"{words}, %" for words in NAMES.values()] + ["correlation"], rows), "",
            f"{results['gpu']}, {dated(results)}, commit `{results['commit']}`, {size['m']}×{size['n']}×{size['k']}, one launch each under "
            f"Nsight Compute {results['profiler']}: means, deviations and correlation of the samples, without the first and the last tenth and the edges of waves."]


def sampled_pictures(line, words, results_folder, figures_folder):
    """{path: SVG} of the request's picture."""
    picture, results = picture_of(line, words), recorded(results_folder)
    return {} if results is None else {figures_folder / picture: drawn(results["launches"])}


def drawn(launches):
    longest = max(map(length_of, launches))
    scale = (RIGHT - LEFT) / longest
    shapes, top = [text(LEFT, 14, "tensor cores (line), L2 (dashes), % of peak", "start", "small")], TITLE
    for launch in launches:
        shapes.append(text(LEFT, top + 16, title_of(launch), "start"))
        bottom = top + TITLE + PANEL
        for percent in (0, 50, 100):
            y = bottom - PANEL * percent / 100
            shapes += [f'<line class="edge" x1="{LEFT}" y1="{y:g}" x2="{RIGHT}" y2="{y:g}"/>', text(LEFT - 8, y + 4, str(percent), "end", "small")]
        for name in NAMES:
            path = " ".join(f"{LEFT + at * scale:.1f},{bottom - PANEL * min(percent, 100) / 100:.1f}" for at, percent in zip(launch["us"], launch[name]))
            shapes.append(f'<polyline class="{name}" points="{path}"/>')
        top = bottom + GAP
    for at in range(0, int(longest) + 1, 50 if longest > 100 else 25):
        shapes.append(text(LEFT + at * scale, top + 12, f"{at} µs" if at else "0", "middle", "small"))
    return svg(top + AXIS, "How busy tensor cores and L2 are over the time of a launch", shapes, STYLE, WIDTH)
