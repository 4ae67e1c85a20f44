"""What a GPU's engines did, as a picture of lanes: two or more schedules of a recorded timeline at the same scale.

    <!-- lanes: 07_streams.json picture=engines.svg schedules=0,4 -->
    <!-- end -->

The file is looked for in docs/results/traces; `07_streams --trace` writes it. `schedules` names the schedules by their place in
the file. There is a lane for each engine that worked, and a box for each piece of work. The picture is written to docs/figures, as
SVG that follows the reader's light or dark theme.
"""
import html
import json
import re

from climb_table import BadInput
from idea_pictures import svg, text
from page_requests import parse_words
from stale import dated

LEFT, RIGHT = 74, 394  # pixels, of the lanes
LANE, BOX, TITLE, GAP = 24, 17, 26, 14
ENGINES = ("upload", "compute", "download")
STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .lane { stroke: #d1d9e0; }
    .upload { fill: #1f77b4; }
    .compute { fill: #2a8c4a; }
    .download { fill: #8e5bb5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .lane { stroke: #3a3c40; }
      .upload { fill: #5aa9e6; }
      .compute { fill: #57c27c; }
      .download { fill: #b995dd; }
    }"""


class Request:
    def __init__(self, line, words, folder):
        name, *words = words
        values, only = parse_words(line, words, ("picture", "schedules"))
        if only or not {"picture", "schedules"} <= values.keys():
            raise BadInput(f"{line}: needs picture= and schedules=, and nothing else")
        if not re.fullmatch(r"[\w-]+\.svg", values["picture"]):
            raise BadInput(f"{line}: picture={values['picture']}: must be the name of an SVG file")
        self.picture, path = values["picture"], folder / name
        if not path.exists():
            raise BadInput(f"{line}: {name}: No such file")
        timeline = json.loads(path.read_text(encoding="utf-8"))
        self.facts, events = timeline["metadata"], timeline["traceEvents"]
        summary = self.facts["summary"]
        self.schedules = []
        for place in values["schedules"].split(","):
            if not place.isdecimal() or int(place) >= len(summary):
                raise BadInput(f"{line}: schedules={values['schedules']}: the file has schedules 0 to {len(summary) - 1}")
            process = int(place)
            lanes = {event["tid"]: event["args"]["name"].removeprefix("engine: ") for event in events
                     if event["ph"] == "M" and event["name"] == "thread_name" and event["pid"] == process}
            work = [event for event in events if event["ph"] == "X" and event["pid"] == process and lanes[event["tid"]] in ENGINES]
            begin = min(event["ts"] for event in work)
            boxes = [(lanes[event["tid"]], event["ts"] - begin, event["dur"]) for event in work]
            self.schedules.append((summary[process]["schedule"], max(at + length for _, at, length in boxes), boxes))


def work_in_words(experiment):
    """What "levels 2048x4096x8192" works on: batches of 2048 rows, and the weights."""
    shape = re.fullmatch(r"\w+ (\d+)x(\d+)x(\d+)", experiment)
    return "Batches of {0} rows, weights of {2} × {1}".format(*shape.groups()) if shape else experiment


def lanes_text(line, words, folder):
    """The lines below the request."""
    request = Request(line, words, folder)
    lengths = "; ".join(f"{name}: {length / 1e3:.1f} ms" for name, length, _ in request.schedules)
    return [f"![Upload, compute and download over time, at one scale: {lengths}](../docs/figures/{request.picture})", "",
            f"{work_in_words(request.facts['summary'][0]['experiment'])}; {request.facts['device']}, {dated(request.facts)}, commit "
            f"`{request.facts['commit']}`."]


def lanes_pictures(line, words, folder, figures_folder):
    """{path: SVG} of the request's picture."""
    request = Request(line, words, folder)
    return {figures_folder / request.picture: drawn(request)}


def drawn(request):
    longest, shapes, top = max(length for _, length, _ in request.schedules), [], 0
    for name, length, boxes in request.schedules:
        shapes.append(text(8, top + 16, f"{html.escape(name)}: {length / 1e3:.1f} ms", "start"))
        for row, engine in enumerate(ENGINES):
            y = top + TITLE + LANE * row
            shapes += [text(LEFT - 6, y + 13, engine, "end", "small"),
                       f'<line class="lane" x1="{LEFT}" y1="{y + BOX + 3}" x2="{RIGHT}" y2="{y + BOX + 3}"/>']
            for lane, at, duration in boxes:
                if lane == engine:
                    scale = (RIGHT - LEFT) / longest
                    shapes.append(f'<rect class="{engine}" x="{LEFT + at * scale:.1f}" y="{y}" '
                                  f'width="{max(duration * scale - 1, 0.5):.1f}" height="{BOX}"/>')
        top += TITLE + LANE * len(ENGINES) + GAP
    return svg(top, "What the engines did", shapes, STYLE)
