"""The pages of the site that need a script: the pipeline bench and the timeline viewer, with the recorded data that they show.

tools/*.html are their templates. Each page says without scripts what it can: the recorded times, and the list of the recorded
timelines. `link`, of several functions, says where the site shows a file of the repository.
"""
import html
import json
import statistics
import string
import sys
from pathlib import Path

from site_files import ROOT, relative

sys.path.insert(0, str(ROOT / "common/results"))
from cube_table import TILE, Cube, clocks_of_step
from lesson_pictures import Sources

TRACES = ROOT / "docs/results/traces"
# Lessons whose times the bench has.
PRESET_OF = ("03", "04", "05", "07")
# Two timelines that say something side by side.
COMPARED = {
    "03": ("03_double_buffer-slots_1", "03_double_buffer-slots_3"),
    "04": ("04_warp_specialized", "05_ws_double_buffer"),
    "05": ("04_warp_specialized", "05_ws_double_buffer"),
    "06": ("05_ws_double_buffer", "06_any_shape"),
    "07": ("07_streams.0", "07_streams.3"),
}
# The site's colours of what is not named like a role.
COLOURS = {"upload": "load", "download": "store", "host function": "other"}
EPILOGUE = "An epilogue between two tiles of C is not part of it."


class WrongTable(Exception):
    """What a table of this file says and the repository does not have; in one line."""


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def filled(template, **values):
    return string.Template((Path(__file__).parent / "tools" / template).read_text(encoding="utf-8")).substitute(values)


def row(*cells):
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def option(value, words, chosen):
    return f'<option value="{value}"{" selected" * (value == chosen)}>{html.escape(words)}</option>'


# --- The pipeline bench ---------------------------------------------------------------------------------------------


def bench_presets(link):
    """{name: preset}, in the order of the lessons."""
    model_file = max((ROOT / "docs/results/model").glob("*.json"))
    steps = {each["step"]: each for each in read_json(model_file)["steps"]}
    presets = {}

    def add(name, title, load, compute, slots, source, words, *, store=0, unit="ns", interval=None, late=False):
        presets[name] = {"title": title, "load": load, "compute": compute, "store": store, "slots": slots, "unit": unit,
                         "interval": interval, "late": late,
                         "source": f'{words} Read from <a href="{link(source)}">{relative(source)}</a>.'}

    def add_predicted(name, step, words):
        """A step as its page predicts it: its parts, which common/model adds up."""
        slots = step["slots"]
        title = f"{name.replace('_one', '').replace('_', '.')} with {slots} slot{'s' * (slots > 1)}, as its page predicts"
        add(name, title, step["load_clocks"], step["compute_clocks"], slots, model_file, words, unit="clocks",
            interval=0 if slots > 1 else None, late=step["late_release"])

    add_predicted("03_one", steps["03_one"], "A step of one block, which copies and multiplies in turn.")
    add_predicted("03", steps["03"], "A step of one block. A slot is filled again when the next tile has landed. All warps ask for "
                  "copies and multiply, in turn: both are compute here.")
    add_predicted("04", steps["04"], f"A step of one block. {EPILOGUE}")
    cube_file = max((ROOT / "docs/results/experiments").glob("*-cube.json"))
    cube = Cube("the pipeline bench", ["sizes=4096"], ROOT / "docs/results")
    step = steps["05_1"]
    slots, compute = step["slots"], step["compute_clocks"]
    clocks = {count: clocks_of_step(cube.by_place[cube.cubes[0], "on", "1", str(count)], Sources(ROOT).tile_shape(TILE))
              for count in (1, slots)}
    add_predicted("05_1", step, f"A step of one block. The page measures {clocks[slots]:.0f} clocks a step.")
    add("05_1_measured", f"05.1 with {slots} slots, with the round that one slot takes", round(clocks[1]) - compute, compute, slots,
        cube_file, f"With one slot the page measures {clocks[1]:.0f} clocks a step: a load and a product one after the other. "
        f"Without the clocks of the product this is the load. With {slots} slots the page measures {clocks[slots]:.0f}.",
        unit="clocks", interval=0)
    add_predicted("05", steps["05"], f"A step of one block. {EPILOGUE}")
    streams = TRACES / "07_streams.json"
    timeline = read_json(streams)
    place = next(i for i, run in enumerate(timeline["metadata"]["summary"]) if run["schedule"].startswith("ring"))
    medians, lanes = engine_medians(timeline, place)
    add("07", f"07: upload, compute, download in {lanes} streams", medians["upload"], medians["compute"], lanes, streams,
        "Medians of a batch on the engines, with the kernel of 05. In the lesson a batch keeps its one slot from upload to "
        "download.", store=medians["download"], unit="µs")
    return presets


def engine_medians(timeline, process):
    """Of one schedule of lesson 07, in microseconds; and its number of streams."""
    events = [event for event in timeline["traceEvents"] if event["pid"] == process]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    medians = {engine: round(statistics.median(event["dur"] for event in events
                                               if event["ph"] == "X" and lanes[event["tid"]] == f"engine: {engine}"))
               for engine in ("upload", "compute", "download")}
    return medians, sum(name.startswith("stream ") for name in lanes.values())


def bench_page(link):
    """The page in Markdown and its fragment."""
    presets = bench_presets(link)

    def cells(preset):
        times = [f"{preset[name]:g}&nbsp;{preset['unit']}" if preset[name] else "" for name in ("load", "compute", "store")]
        return row(preset["title"], *times, preset["slots"], preset["source"])

    fragment = filled("bench.html", rows="".join(map(cells, presets.values())),
                      options="".join(option(name, preset["title"], "05") for name, preset in presets.items()),
                      most=max(3000, *(2 * preset[name] for preset in presets.values() for name in ("load", "compute", "store"))),
                      presets=json.dumps(presets, ensure_ascii=False).replace("<", "\\u003c"))  # it stands in a <script>
    text = ("# The pipeline bench {#bench}\n\n"
            "Tiles pass through roles, and a ring of slots lies between two roles. Change the times and the number of slots, and "
            "see who waits for whom. The rules and the formulas are those of <a href=\"cost_model.html\">the cost model</a>.\n\n"
            "@htmlinclude[block] bench.fragment.html\n\n"
            "Try to answer before you move a slider:\n\n"
            "- 04 has one slot. How much does a second one save, and why does a third one save nothing?\n"
            "- 05 has four slots. How few would do without a step taking longer?\n"
            "- Late release costs a slot. How many slots does it need to be as fast as early release with two?\n")
    return text, fragment


# --- The timeline viewer --------------------------------------------------------------------------------------------


def timelines(link):
    """{name: timeline}: one for each process of each recorded file."""
    found = {}
    for path in sorted(TRACES.glob("*.json")):
        file = read_json(path)
        facts, processes = file["metadata"], {}
        for event in file["traceEvents"]:
            processes.setdefault(event["pid"], []).append(event)
        for process, events in processes.items():
            name = path.stem if len(processes) == 1 else f"{path.stem}.{process}"
            found[name] = timeline(path, facts, events, process, len(processes), link)
    for name in sorted({name for pair in COMPARED.values() for name in pair} - found.keys()):
        raise WrongTable(f"docs/site/live_pages.py: COMPARED: there is no recorded timeline {name}")
    return found


def timeline(path, facts, events, process, processes, link):
    """One process of a file: its lanes, and its spans as [lane, name, colour, begin, length]."""
    titles = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    lanes, names = {lane: index for index, lane in enumerate(titles)}, {}
    work = [event for event in events if event["ph"] == "X"]
    begin = min(event["ts"] for event in work)
    spans = [[lanes[event["tid"]], names.setdefault(event["name"], len(names)), COLOURS.get(event["cat"], event["cat"]),
              round(event["ts"] - begin, 4), round(event["dur"], 4)] for event in work]
    summary = facts["summary"]
    waited = {role["role"]: f"waited {role['waited_percent']:.0f} %" for role in summary if "role" in role}
    if processes > 1:
        title = f"{facts['lesson']}, {summary[process]['schedule']}"
        about = f"{summary[process]['experiment']}, {summary[process]['schedule']}"
    else:
        slots = slots_of(facts)
        title = facts["lesson"] + (f", {slots} slot{'s' * (slots > 1)}" if slots else "")
        about = f"{facts['settings']}; {facts['shape']}; one block of the launch"
    if "launch_us" in facts:
        about += (f", which took {float(facts['launch_us']):.1f} µs with recording, "
                  f"{float(facts['untraced_launch_us']):.1f} µs without")
    return {"title": f"{title}, {facts['device']}", "lesson": facts["lesson"], "file": relative(path),
            "unit": "thousand cycles" if facts["unit"] == "cycles" else "µs",
            "end": max(span[3] + span[4] for span in spans),
            "lanes": [{"name": title, "note": waited.get(title, "")} for title in titles.values()],
            "names": list(names), "spans": spans,
            "facts": f"{html.escape(about)}; {facts['device']}, {facts['date']}, commit <code>{facts['commit']}</code>. "
                     f'<a href="{link(path)}">{relative(path)}</a>'}


def slots_of(facts):
    """0 where a lesson has no such setting."""
    settings = dict(word.split("=") for word in facts.get("settings", "").split())
    return int(settings.get("slots", 0))


def timelines_page(link):
    """The page in Markdown, its fragment, and the script that holds the data."""
    found = timelines(link)
    data = {name: {key: value for key, value in each.items() if key not in ("lesson", "file")} for name, each in found.items()}

    def options(chosen):
        groups = {}
        for name, each in found.items():
            groups.setdefault(each["lesson"], []).append(option(name, each["title"], chosen))
        return "".join(f'<optgroup label="{lesson}">{"".join(group)}</optgroup>' for lesson, group in groups.items())

    def cells(each):
        lanes = ", ".join(lane["name"] + (f" ({lane['note']})" if lane["note"] else "") for lane in each["lanes"])
        return row(html.escape(each["title"]), html.escape(lanes),
                   f'<a href="{link(ROOT / each["file"])}">{Path(each["file"]).name}</a>')

    upper, lower = COMPARED["04"]
    fragment = filled("timelines.html", upper=options(upper), lower=options(lower), rows="".join(map(cells, found.values())))
    text = ("# The timeline viewer {#timelines}\n\n"
            "What the roles of a block did, and when, as it was recorded: on the GPU by its clock, on the CPU device by the clock of "
            "its model. A lane is a role, a box is what it did; pale boxes are waits.\n\n"
            "@htmlinclude[block] timelines.fragment.html\n")
    return text, fragment, f"const recordedTimelines = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"


# --- Links to these pages -------------------------------------------------------------------------------------------


def links(label, with_code, with_mistakes):
    """[(words, address)] of the live pages that belong to the page of this name. `with_code`: the numbers of lessons that there
    is a single file of; `with_mistakes`: {number: its first mistake}."""
    number = label[len("lesson_"):][:2] if label.startswith("lesson_") else None
    timeline = label.removeprefix("deeper_")[:2] if label.startswith("deeper_") and label.endswith("_timeline") else number
    found = []
    if label == "cost_model":
        found += [("the pipeline bench", "bench.html"), ("the timeline viewer", "timelines.html")]
    if number in PRESET_OF:
        found.append(("this lesson's times in the pipeline bench", f"bench.html?begin={number}"))
    if timeline in COMPARED:
        found.append(("its timeline", f"timelines.html?show={','.join(COMPARED[timeline])}"))
    if label == "lab":
        found.append(("the mistakes one by one", "mistakes.html"))
    if number in with_mistakes:
        found.append(("its mistakes one by one", f"mistakes.html#{with_mistakes[number]}"))
    if number in with_code:
        found.append(("its code in one file", f"code_{number}.html"))
    return found
