#!/usr/bin/env python3
"""Draws the site's pictures from the committed result files, each as SVG for light and for dark pages, for a wide screen and for a phone.

    make_figures.py FOLDER

FOLDER/figures.json lists them: alternative text, caption, and the files that each was drawn from; FOLDER/colours.css has their
colours for pages that draw with scripts. Exit code 2: bad input, one line.
"""
import argparse
import itertools
import json
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("MPLCONFIGDIR", os.path.join(tempfile.gettempdir(), f"matplotlib-{os.getuid()}"))
import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common/results"))
from climb_table import BadInput, Climb, fastest_library, read_results, shape, shape_title
from record_files import newest
from script import end_with

from site_files import ROOT, relative

RESULTS = ROOT / "docs/results"
PHONE = 4  # inches that a picture for phones is wide: they show it at 0.96 of its size

# Datasheet of the H200 SXM: dense bf16, and HBM3e. 4096 flops a cycle of each of 132 SMs is the former at 1.83 GHz.
PEAK_TFLOPS, PEAK_TB_PER_S = 989, 4.8

THEMES = {
    "light": {"text": "#2f4153", "faint": "#9aa5ad", "grid": "#dedede", "load": "#1f77b4", "compute": "#2a8c4a",
              "store": "#8e5bb5", "wait": "#d8dde1", "other": "#c98a1b", "mark": "#c7352b",
              "series": ["#8a8f94", "#b07aa1", "#9c6b3f", "#c98a1b", "#e0662f", "#c7352b", "#8e5bb5", "#1f77b4", "#2a8c4a", "#0f8b8d"]},
    "dark": {"text": "#d2dbde", "faint": "#7d878d", "grid": "#3a3c40", "load": "#5aa9e6", "compute": "#57c27c",
             "store": "#b995dd", "wait": "#3d4247", "other": "#e6b450", "mark": "#ff7b72",
             "series": ["#9aa0a6", "#d6a3c9", "#c79a6b", "#e6b450", "#f0925f", "#ff7b72", "#b995dd", "#5aa9e6", "#57c27c", "#4cc9c0"]},
}


PATH = re.compile(r'(?<= d=")[^"]*(?=")')
ALIKE = re.compile(r'<path d="([^"]*)" ((?:(?!opacity)[^<>])*)/>(?:<path d="[^"]*" \2/>)+')
DATA = re.compile(r'<path d="([^"]*)"')


def compact(svg):
    """The same picture in a third of the bytes: hundredths of a point, edges along an axis by one number, boxes of a kind in one path."""
    def path(found):
        words, at, position = found[0].split(), [None, None], 0
        result = ""
        while position < len(words):
            command, position = words[position], position + 1
            if command not in ("M", "L"):
                end = next((i for i in range(position, len(words)) if words[i].isalpha()), len(words))
                numbers = [short(number) for number in words[position:end]]
                at, position = numbers[-2:] or at, end
                result += command + " ".join(numbers)
                continue
            to, position = [short(number) for number in words[position:position + 2]], position + 2
            if command == "L" and to[1] == at[1]:
                result += f"H{to[0]}"
            elif command == "L" and to[0] == at[0]:
                result += f"V{to[1]}"
            else:
                result += f"{command}{to[0]} {to[1]}"
            at = to
        return result

    return ALIKE.sub(lambda found: f'<path d="{"".join(DATA.findall(found[0]))}" {found[2]}/>',
                     re.sub(r">\s+<", "><", PATH.sub(path, svg)))


def short(number):
    return f"{float(number):.2f}".rstrip("0").rstrip(".")


class Figures:
    """Draws each picture for each theme and kind of screen, and remembers what is said of it."""

    def __init__(self, folder):
        self.folder, self.facts = folder, {}

    def add(self, name, draw, sources, alt, caption, size, phone_height, width="wide"):
        """draw(figure, colours, phone): in the latter case with no words below 9 points. Sizes are inches."""
        for (theme, colours), phone in itertools.product(THEMES.items(), (False, True)):
            style = {"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif", "font.size": 9 if phone else 10,
                     "text.color": colours["text"], "axes.labelcolor": colours["text"], "axes.edgecolor": colours["faint"],
                     "xtick.color": colours["text"], "ytick.color": colours["text"], "grid.color": colours["grid"],
                     "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
                     "figure.facecolor": "none", "axes.facecolor": "none", "savefig.transparent": True}
            with matplotlib.rc_context(style):
                figure = pyplot.figure(figsize=(PHONE, phone_height) if phone else size, layout="constrained")
                draw(figure, colours, phone)
                path = self.folder / f"{name}{'.phone' if phone else ''}.{theme}.svg"
                figure.savefig(path, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
                pyplot.close(figure)
                path.write_text(compact(path.read_text(encoding="utf-8")), encoding="utf-8")
        self.facts[name] = {"alt": alt, "caption": caption, "sources": [relative(path) for path in sources], "width": width}

    def write(self):
        (self.folder / "figures.json").write_text(json.dumps(self.facts, indent=1), encoding="utf-8")
        selectors = {"light": "html", "dark": "html.dark-mode"}
        rules = [f"{selectors[theme]} {{ " + " ".join(f"--draw-{name}: {colour};" for name, colour in colours.items()
                                                      if isinstance(colour, str)) + " }"
                 for theme, colours in THEMES.items()]
        (self.folder / "colours.css").write_text("\n".join(["/* Made by make_figures.py. */", *rules, ""]), encoding="utf-8")


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error


# --- The climb ------------------------------------------------------------------------------------------------------


def rung_name(run, runs):
    """The lesson's number, and what tells this rung from the lesson's others."""
    siblings = [other for other in runs if other["lesson"] == run["lesson"]]
    details = []
    if len({other["core"] for other in siblings}) > 1:
        details.append(run["core"])
    for name, value in sorted(run["settings"].items()):
        if name != "core" and len({other["settings"].get(name) for other in siblings}) > 1:
            details.append(value if not value.isdigit() else f"{value} {name}")
    return run["lesson"][:2] + (" " + ", ".join(details) if details else "")


def panel_columns(climb, phone):
    return 1 if phone else 2 if len(climb.shapes) in (2, 4) else min(3, len(climb.shapes))


def draw_climb(figure, colours, phone, climb):
    """A panel for each shape: each step is connected with what it builds on, and where there is room the line says the gain."""
    rungs, columns = climb.rungs, panel_columns(climb, phone)
    most = max(run["tflops"] for run in climb.runs)
    place = {rung: i for i, rung in enumerate(rungs)}
    panels = figure.subplots(-(-len(climb.shapes) // columns), columns, sharey=True, squeeze=False).flat
    for axes, sizes in itertools.zip_longest(panels, climb.shapes):
        if sizes is None:
            axes.set_axis_off()
            continue
        here = {rung: climb.by_place[rung, sizes]["tflops"] for rung in rungs if (rung, sizes) in climb.by_place}
        for rung in here:
            base = climb.base(rung)
            if base not in here:
                continue
            colour = colours[colour_of(rung)]
            axes.plot([place[base], place[rung]], [here[base], here[rung]], color=colour, linewidth=1.5, zorder=1)
            if phone:
                continue
            axes.annotate(f"{here[rung] / here[base]:.2f}×", ((place[base] + place[rung]) / 2, (here[base] + here[rung]) / 2),
                          xytext=(0, 4), textcoords="offset points", ha="right", va="bottom", fontsize=7,
                          color=colour if colour != colours["faint"] else colours["text"])
        axes.scatter([place[rung] for rung in here], list(here.values()), s=18, zorder=2, color=[colours[colour_of(rung)] for rung in here])
        if library := fastest_library(climb.runs, sizes):
            axes.axhline(library["tflops"], color=colours["other"], linestyle="--", linewidth=1, zorder=0)
        axes.set_title(shape_title(sizes), fontsize=10, loc="left")
        axes.set_xticks(range(len(rungs)), rungs, rotation=90, fontsize=9)
        axes.set(xlim=(-1, len(rungs) - .5), ylim=(0, 1.1 * most))
        axes.grid(axis="y")
    for axes in figure.axes[::columns]:
        axes.set_ylabel("TFLOP/s")
    lines = [pyplot.Line2D([], [], color=colours["load"]), pyplot.Line2D([], [], color=colours["compute"]),
             pyplot.Line2D([], [], color=colours["other"], linestyle="--")]
    figure.legend(lines, ["a ring", "roles", "fastest library"], ncols=3, fontsize=9, loc="upper right")
    figure.get_layout_engine().set(rect=(0, 0, 1, .98 if phone else .95))


def colour_of(rung):
    """The colour of what a step adds."""
    return "load" if rung in ("03", "05.1") else "compute" if rung.startswith("04") else "mark"


def add_climb(figures, path, results):
    climb = Climb(results["runs"])
    rows = -(-len(climb.shapes) // panel_columns(climb, phone=False))
    figures.add("climb", lambda figure, colours, phone: draw_climb(figure, colours, phone, climb), [path],
                "Speed of every step at each shape, in TFLOP/s, connected with the step that it builds on; the table holds the "
                "same figures.",
                f"Speed of each step, connected with what it builds on; on a wide screen the gain stands on the line. {results['gpu']}, "
                f"{results['date']}.", size=(9.2, .4 + 2.7 * rows), phone_height=.4 + 2.2 * len(climb.shapes))


def write_picture_of_links(folder, climb):
    """link.png, 1200 x 630 pixels: what others show beside a link to the site. Made for light backgrounds only."""
    colours, cube = THEMES["light"], (4096,) * 3
    runs = [climb.by_place[rung, cube] for rung in climb.rungs]
    with matplotlib.rc_context({"font.size": 11, "text.color": colours["text"], "axes.edgecolor": colours["faint"]}):
        figure = pyplot.figure(figsize=(12, 6.3))
        axes = figure.add_axes((.03, .06, .94, .58))
        speeds = [run["tflops"] for run in runs]
        axes.bar(range(len(speeds)), speeds, color=[colours["load"]] * (len(speeds) - 1) + [colours["compute"]])
        for place, speed in enumerate(speeds):
            axes.text(place, speed + 10, f"{speed:.0f}", ha="center", fontsize=15)
        axes.axis("off")
        figure.text(.06, .86, "Kernel Ladder", fontsize=44, fontweight="bold")
        figure.text(.06, .76, f"From a naive GEMM to the speed of cuBLAS, one idea at a time. TFLOP/s at {shape_title(cube)}.", fontsize=19)
        figure.savefig(folder / "link.png", dpi=100, metadata={"Software": None})
        pyplot.close(figure)


# --- The roofline ---------------------------------------------------------------------------------------------------


def is_of(run, key, value):
    """Whether the run had this setting; lessons that choose by themselves say what they took."""
    had = run["settings"].get(key, value)
    if had == "auto" and key == "cluster_m":
        return value == (run.get("choice", "").partition("cluster ")[2].partition("x")[0] or "1")
    return had in (value, "auto")


def roofline_points(profile, results):
    """Of each profiled kernel: flops for each byte of GPU memory, as profiled, and the speed that the climb measured."""
    points = []
    for launch in profile["launches"]:
        same = [run for run in results["runs"] if run["lesson"] == launch["lesson"] and shape(run) == shape(launch)
                and (launch["core"] in ("auto", run["core"]) or run["settings"].get("core") == launch["core"])
                and all(is_of(run, key, value) for key, value in launch["settings"].items())]
        if not same:
            continue
        metrics = launch["metrics"]
        moved = metrics["dram__bytes_read.sum"] + metrics["dram__bytes_write.sum"]
        best = max(same, key=lambda run: run["tflops"])
        points.append((2 * launch["m"] * launch["n"] * launch["k"] / moved, best["tflops"], rung_name(best, results["runs"]),
                       launch["lesson"]))
    # Several launches of a rung show the same kernel.
    return list({point[2]: point for point in points}.values())


def draw_roofline(figure, colours, phone, points, lesson):
    axes = figure.add_subplot()
    low, high = 10, 3e4
    ridge = PEAK_TFLOPS / PEAK_TB_PER_S
    axes.plot([low, ridge, high], [low * PEAK_TB_PER_S, PEAK_TFLOPS, PEAK_TFLOPS], color=colours["faint"], linewidth=1.5)
    axes.text(low * 1.15, low * PEAK_TB_PER_S * 1.5, f"memory: {PEAK_TB_PER_S} TB/s", color=colours["faint"], rotation=39 if phone else 33,
              rotation_mode="anchor", fontsize=9)
    axes.text(high, PEAK_TFLOPS * 1.12, f"tensor cores: {PEAK_TFLOPS} TFLOP/s", color=colours["faint"], ha="right", fontsize=9)
    place = PEAK_TFLOPS
    for intensity, speed, name, owner in sorted(points, key=lambda point: -point[1]):
        mine = lesson in (None, owner)
        colour = colours["faint"] if not mine else colours["load"] if lesson is None else colours["mark"]
        axes.plot(intensity, speed, "o", color=colour, markersize=7 if mine else 5, zorder=3 if mine else 2)
        if mine:  # the names stand in a column of their own, one above the other
            place = min(speed, place / (1.6 if phone else 1.45))
            axes.annotate(name, (intensity, speed), xytext=(high / 12, place), color=colour, fontsize=9, va="center",
                          arrowprops={"arrowstyle": "-", "relpos": (0, .5), "color": colour, "linewidth": .6, "shrinkB": 4})
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(1, 3000), xlabel="flops for each byte of GPU memory",
             ylabel="TFLOP/s")
    axes.grid(which="major")


def add_rooflines(figures, record, climb_path, results):
    profile = read_json(record)
    points = roofline_points(profile, results)
    caption = (f"The roofline of the datasheet (dense bf16, HBM3e) and the kernels at 4096³: bytes as the profiler counted "
               f"them, speed from the climb; {results['gpu']}, {results['date']}.")
    for lesson in [None] + sorted({point[3] for point in points}):
        name = f"roofline_{lesson}" if lesson else "roofline"
        listed = [point for point in points if lesson in (None, point[3])]
        alt = "; ".join(f"{point[2]}: {point[0]:.0f} flops a byte, {point[1]:.0f} TFLOP/s" for point in listed)
        figures.add(name, lambda figure, colours, phone, lesson=lesson: draw_roofline(figure, colours, phone, points, lesson),
                    [record.path, climb_path], f"Roofline. {alt}.", caption, size=(6.4, 4.2), phone_height=3.8, width="narrow")


# --- Timelines ------------------------------------------------------------------------------------------------------

KINDS = ("load", "compute", "store", "wait")


def timeline_lanes(trace):
    """Names of the lanes of block 0 in order, and the spans of each: (kind, begin, duration), times in µs or cycles."""
    scale = 1 if trace["metadata"]["unit"] == "ns" else 1000  # the file shows a cycle as a nanosecond
    names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"]
             if event["name"] == "thread_name" and event["pid"] == 0}
    lanes = {name: [] for name in names.values()}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["pid"] == 0:
            lanes[names[event["tid"]]].append((event["cat"], event["ts"] * scale, event["dur"] * scale))
    order = lambda name: (["loader", "compute", "storer"].index(role) if (role := name.split()[0].rstrip(":")) in
                          ("loader", "compute", "storer") else 3, name)
    return {name: lanes[name] for name in sorted(lanes, key=order)}


def shown_window(lanes):
    """From the first span to just behind the first stores: a tile of C from its first load to its last byte."""
    begin = min(start for spans in lanes.values() for _, start, _ in spans)
    stores = sorted(start + duration for spans in lanes.values() for kind, start, duration in spans if kind == "store")
    end = max(start + duration for spans in lanes.values() for _, start, duration in spans)
    first = [time for time in stores if time < stores[0] + (end - begin) / 50] if stores else []
    return begin, min(end, begin + 1.12 * ((first[-1] if first else end) - begin))


def draw_timeline(figure, colours, phone, trace, lanes):
    on_cpu = trace["metadata"]["unit"] != "ns"
    begin, end = shown_window(lanes)
    windows = [((begin, end), "the first tile of C"), ((begin, begin + (end - begin) / 5), "its first steps")]
    windows = windows[:1] if on_cpu else windows  # the CPU device's recordings are short
    parts = figure.subplots(len(windows), 1, squeeze=False)[:, 0]
    for axes, ((left, right), title) in zip(parts, windows):
        for place, (name, spans) in enumerate(reversed(lanes.items())):
            for kind in KINDS:
                bars = [(start, duration) for what, start, duration in spans if what == kind and start < right]
                axes.broken_barh(bars, (place - .38, .48 if phone else .76), facecolors=colours.get(kind, colours["other"]), linewidth=0)
            if phone:  # the name of a lane stands above it
                axes.text(left, place + .12, name, va="bottom")
        axes.set(xlim=(left, right), ylim=(-.5, len(lanes) - .4), yticks=() if phone else range(len(lanes)),
                 yticklabels=() if phone else list(reversed(lanes)))
        axes.set_title(title, fontsize=10, loc="left", pad=22 if phone and axes is parts[0] else None)
        axes.tick_params(axis="y", length=0)
    parts[-1].set_xlabel("time, cycles" if on_cpu else "time, µs")
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=colours[kind]) for kind in KINDS]
    parts[0].legend(patches, ["loads", "computes", "stores", "waits"], ncols=4, loc="lower right", bbox_to_anchor=(1, 1), fontsize=9,
                    columnspacing=1, handlelength=1.2)


def add_timeline(figures, path):
    trace = read_json(path)
    lanes = timeline_lanes(trace)
    facts = trace["metadata"]
    on_cpu = facts["unit"] != "ns"
    words = ("on the CPU device, by its virtual clock; what runs in the background has lanes of its own" if on_cpu else
             f"on an {facts['device']}; “loads” is the time to start copies, which land during the next wait")
    figures.add(f"timeline_{path.stem.replace('-', '_')}",
                lambda figure, colours, phone: draw_timeline(figure, colours, phone, trace, lanes), [path],
                f"Timeline of {facts['lesson']}: when each role of block 0 loads, computes, stores and waits.",
                f"What the roles of block 0 of {facts['lesson']} do at {facts['shape']}, {words}. {facts['date']}, commit "
                f"{facts['commit']}.", size=(8.4, (1 if on_cpu else 1.6) + (.26 if on_cpu else .46) * len(lanes)),
                phone_height=(1.1 if on_cpu else 1.8) + (.42 if on_cpu else .8) * len(lanes))


# --- What the engines of a GPU did for the streams of lesson 07 -------------------------------------------------------

ENGINES = {"upload": "load", "compute": "compute", "download": "store"}  # and the colours of the roles that they resemble


def engine_spans(trace, process):
    """{engine: [(begin, duration)]} in ms, of one schedule."""
    spans = {engine: [] for engine in ENGINES}
    names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"]
             if event["name"] == "thread_name" and event["pid"] == process}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["pid"] == process:
            engine = names[event["tid"]].removeprefix("engine: ")
            if engine in spans:
                spans[engine].append((event["ts"] / 1e3, event["dur"] / 1e3))
    return spans


def draw_engines(figure, colours, _phone, schedules):
    shown = 6 * max(begin + duration for engine in schedules[0][1].values() for begin, duration in engine[:1])
    for axes, (name, spans) in zip(figure.subplots(len(schedules), 1, sharex=True), schedules):
        for place, (engine, role) in enumerate(reversed(ENGINES.items())):
            for number, (begin, duration) in enumerate(spans[engine]):
                if begin < shown:
                    axes.broken_barh([(begin, duration)], (place - .38, .76), facecolors=colours[role],
                                     alpha=1 if number % 2 else .6, linewidth=0)
        axes.set(xlim=(0, shown), yticks=range(len(ENGINES)), yticklabels=list(reversed(ENGINES)))
        axes.set_title(name, fontsize=10, loc="left")
        axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time, ms")


def add_engines(figures, path):
    """The first level, where everything waits for everything, and the last."""
    trace = read_json(path)
    processes = {event["pid"]: event["args"]["name"].split(", ", 1)[1].rsplit(":", 1)[0]
                 for event in trace["traceEvents"] if event["name"] == "process_name"}
    chosen = [process for process, name in processes.items() if name.startswith(("nothing", "clusters"))]
    schedules = [(processes[process], engine_spans(trace, process)) for process in chosen]
    facts = trace["metadata"]
    figures.add(f"engines_{path.stem.replace('-', '_')}",
                lambda figure, colours, phone: draw_engines(figure, colours, phone, schedules), [path],
                "Timeline of the engines of a GPU: one after the other without streams, all at one time with them.",
                f"What the engines of an {facts['device']} do at the start of lesson 07's levels: "
                f"{trace['metadata']['summary'][0]['experiment'].removeprefix('levels ')}, one batch light, the next dark. "
                f"{facts['date']}, commit {facts['commit']}.", size=(8.4, 3.8), phone_height=3.6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    figures = Figures(arguments.folder)

    climb_path = max(RESULTS.glob("*.json"))  # the newest: names begin with the date
    results = read_results(climb_path)
    add_climb(figures, climb_path, results)
    write_picture_of_links(arguments.folder, Climb(results["runs"]))
    add_rooflines(figures, newest(RESULTS, "profiles/profiles"), climb_path, results)
    for path in sorted((RESULTS / "traces").glob("*.json")):
        facts = read_json(path)["metadata"]
        if facts["unit"] == "us":  # of streams, not of a kernel's roles
            if facts["summary"][0]["experiment"].startswith("levels "):
                add_engines(figures, path)
        else:
            add_timeline(figures, path)
    figures.write()
    return 0


if __name__ == "__main__":
    end_with(main, BadInput)
