"""The pages of the site that need a script: the pipeline bench and the timeline viewer, with the recorded data that they show.

Each page says without scripts what it can: the recorded times, and the list of the recorded timelines.
"""
import html
import json
import statistics

from site_files import ROOT, relative

TRACES = ROOT / "docs/results/traces"
# Lessons whose times the bench has.
PRESET_OF = ("03", "04", "05", "06", "07")
# Two timelines that say something side by side.
COMPARED = {
    "03": ("03_double_buffer-slots_1", "03_double_buffer-slots_3"),
    "04": ("04_warp_specialized", "05_ws_double_buffer"),
    "05": ("04_warp_specialized", "05_ws_double_buffer"),
    "06": ("05_ws_double_buffer", "06_clusters_dsmem"),
    "07": ("07_streams.0", "07_streams.3"),
}
EPILOGUE = "An epilogue between two tiles of C is not part of it."


class WrongTable(Exception):
    """What a table of this file says and the repository does not have; in one line."""


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def scripts(*names):
    return "".join(f'<script src="tools/{name}" defer="defer"></script>' for name in names)


def no_script(words):
    return f"<noscript><p>{words}</p></noscript>"


# --- The pipeline bench ---------------------------------------------------------------------------------------------


def one_slot_times(trace, lane):
    """Of a timeline with one slot, in ns, as common/model/calibration.cpp reads 04's: load lasts from the end of a compute until
    the next tile has landed, compute from there on."""
    spans = sorted((event["ts"], event["ts"] + event["dur"], event["cat"]) for event in trace["traceEvents"]
                   if event["ph"] == "X" and event["tid"] == lane)
    waits = [end for _, end, category in spans if category == "wait"]
    computed = [end for _, end, category in spans if category == "compute"]
    if len(waits) != len(computed):
        raise ValueError("waits for copies and computes do not alternate")
    return (round(1000 * statistics.median(landed - before for before, landed in zip(computed, waits[1:]))),
            round(1000 * statistics.median(done - landed for landed, done in zip(waits, computed))))


def setting(settings, name):
    return int(dict(word.split("=") for word in settings.split())[name])


def bench_presets(link):
    """{name: preset}, in the order of the lessons. `link` makes a link to a file of the repository."""
    model_file = max((ROOT / "docs/results/model").glob("*.json"))
    calibrations = {each["lesson"][:2]: each for each in read_json(model_file)["calibrations"]}
    presets = {}

    def add(name, title, load, compute, slots, sources, words, *, store=0, unit="ns", together=True):
        presets[name] = {
            "title": title, "load": load, "compute": compute, "store": store, "slots": slots, "unit": unit,
            "interval": 0 if together else None, "late": together and slots > 1,
            "source": f"{words} Read from {', '.join(f'<a href={link(path)!r}>{relative(path)}</a>' for path in sources)}."}

    one, three = TRACES / "03_double_buffer-slots_1.json", TRACES / "03_double_buffer-slots_3.json"
    load, compute = one_slot_times(read_json(one), 0)
    several = setting(read_json(three)["metadata"]["settings"], "slots")
    add("03_one", "03 with 1 slot", load, compute, 1, [one], "A step of one warpgroup, which copies and multiplies by turns.", together=False)
    add("03", f"03 with {several} slots", load, compute, several, [one, three],
        f"The times of one slot in a ring of {several}. In the lesson one warpgroup does both, so that its steps take longer than here.")
    seen = calibrations["04"]
    add("04", f"04 with {seen['slots']} slot", seen["load_ns"], seen["compute_ns"], seen["slots"], [model_file],
        f"A step of one block. {EPILOGUE}", together=False)
    for number in ("05", "06"):
        found = calibrations[number]
        add(number, f"{number} with {found['slots']} slots", found["load_ns"] or seen["load_ns"], found["compute_ns"], found["slots"],
            [model_file], f"A step of one block. The ring hides its loads, so this load is that of 04's one slot. {EPILOGUE}")
    streams = TRACES / "07_streams.json"
    timeline = read_json(streams)
    place = next(i for i, run in enumerate(timeline["metadata"]["summary"]) if run["schedule"].startswith("ring"))
    medians, lanes = engine_medians(timeline, place)
    add("07", f"07: upload, compute, download in {lanes} streams", medians["upload"], medians["compute"], lanes, [streams],
        "Medians of a batch on the engines, with the kernel of 05. In the lesson a batch keeps its one slot from upload to download.",
        store=medians["download"], unit="µs", together=False)
    return presets


def engine_medians(timeline, process):
    """Of one schedule of lesson 07, in microseconds; and its number of streams."""
    lanes = {event["tid"]: event["args"]["name"] for event in timeline["traceEvents"]
             if event["name"] == "thread_name" and event["pid"] == process}
    medians = {}
    for engine in ("upload", "compute", "download"):
        medians[engine] = round(statistics.median(event["dur"] for event in timeline["traceEvents"]
                                                  if event["ph"] == "X" and lanes.get(event["tid"]) == f"engine: {engine}"))
    return medians, sum(name.startswith("stream ") for name in lanes.values())


def slider(name, words, most, least=0, value=0):
    return (f'<label for="bench-{name}">{words}</label><input type="range" id="bench-{name}" min="{least}" max="{most}" step="1" value="{value}"/>'
            f'<output id="bench-{name}-value" for="bench-{name}"></output>')


def switch(name, words):
    return f'<label class="switch"><input type="checkbox" id="bench-{name}"/> {words}</label>'


def bench_page(link):
    """The page in Markdown and its fragment."""
    presets = bench_presets(link)
    options = "".join(f'<option value="{name}"{" selected" * (name == "05")}>{preset["title"]}</option>' for name, preset in presets.items())
    time = lambda preset, name: f"{preset[name]:g}&nbsp;{preset['unit']}"
    rows = "".join(f'<tr><td>{preset["title"]}</td><td>{time(preset, "load")}</td><td>{time(preset, "compute")}</td>'
                   f'<td>{time(preset, "store") if preset["store"] else ""}</td><td>{preset["slots"]}</td><td>{preset["source"]}</td></tr>'
                   for preset in presets.values())
    most = max(3000, *(2 * preset[key] for preset in presets.values() for key in ("load", "compute", "store")))
    fragment = f"""
<div class="tool bench needs-script">
<div class="controls">
<label for="bench-preset">Begin with</label><select id="bench-preset">{options}<option value="own">your own values</option></select>
<label for="bench-roles">Roles</label><select id="bench-roles"><option value="2">two: load, compute</option><option value="3">three: load, compute, store</option></select>
</div>
<p class="facts" id="bench-source"></p>
<div class="sides">
<div class="sliders">
{slider("load", "load <i>l</i>", most)}
{slider("interval", "load interval <i>o</i>", most)}
{slider("compute", "compute <i>c</i>", most)}
{slider("store", "store <i>s</i>", most)}
{slider("slots", "slots <i>S</i>", 8, 1)}
{slider("tiles", "tiles <i>n</i>", 40, 1, 12)}
{switch("together", "copies are under way together: the next one starts an interval after this one")}
{switch("late", "late release: a slot waits for the next tile to land")}
</div>
<div class="answer" aria-live="polite">
<dl>
<dt>The timeline ends at</dt><dd id="bench-total"></dd>
<dt>The closed form says</dt><dd id="bench-closed"></dd>
<dt>Each further tile adds</dt><dd id="bench-per-tile"></dd>
<dt>Compute is busy</dt><dd id="bench-busy"></dd>
</dl>
<p class="facts">What a further tile adds, by the number of slots:</p>
<div class="by-slots" id="bench-by-slots"></div>
</div>
</div>
<div id="bench-chart"></div>
<p class="said" id="bench-said"></p>
<p class="facts">The same in a terminal: <code id="bench-command"></code></p>
</div>
{no_script("The sliders need JavaScript. <code>build/bin/predict</code> computes the same without it.")}
<div class="scrolls"><table class="markdownTable"><thead><tr><th>begin with</th><th>load</th><th>compute</th><th>store</th><th>slots</th><th>where it is from</th></tr></thead><tbody>{rows}</tbody></table></div>
<script type="application/json" id="bench-presets">{as_script(presets)}</script>
{scripts("d3.min.js", "model.js", "lanes.js", "bench.js")}
"""
    text = ("# The pipeline bench {#bench}\n\n"
            "Tiles pass through roles, and a ring of slots lies between two roles. Change the times and the number of slots, and see who "
            "waits for whom. The rules and the formulas are those of <a href=\"cost_model.html\">the cost model</a>.\n\n"
            "@htmlinclude[block] bench.fragment.html\n\n"
            "Try to answer before you move a slider:\n\n"
            "- 04 has one slot. How much does a second one save, and why does a third one save nothing?\n"
            "- 05 has four slots. How few would do before a step takes longer?\n"
            "- With late release, which number of slots does two without it correspond to?\n")
    return text, fragment


def as_script(data):
    """JSON that may stand in a page."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


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
    names, spans = {}, []
    titles = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    lanes = {lane: index for index, lane in enumerate(titles)}
    work = [event for event in events if event["ph"] == "X"]
    begin = min(event["ts"] for event in work)
    for event in work:
        spans.append([lanes[event["tid"]], names.setdefault(event["name"], len(names)), category_of(event["cat"]),
                      round(event["ts"] - begin, 4), round(event["dur"], 4)])
    summary = facts["summary"]
    waited = {role["role"]: f"waited {role['waited_percent']:.0f} %" for role in summary if "role" in role}
    if processes > 1:
        title = f"{facts['lesson']}, {summary[process]['schedule']}"
        about = f"{summary[process]['experiment']}, {summary[process]['schedule']}"
    else:
        title = facts["lesson"] + "".join(f", {slots} slot{'s' * (slots > 1)}" for slots in [slots_of(facts)] if slots)
        about = f"{facts['settings']}; {facts['shape']}; one block of the launch"
    took = "".join(f", {float(facts[key]):.1f} µs {words}" for key, words in
                   (("launch_us", "with recording"), ("untraced_launch_us", "without")) if key in facts)
    took = took and f"; the launch took {took[2:]}"
    return {"title": f"{title}, {facts['device']}", "lesson": facts["lesson"], "unit": "thousand cycles" if facts["unit"] == "cycles" else "µs",
            "end": round(max(span[3] + span[4] for span in spans), 4),
            "lanes": [{"name": title, "note": waited.get(title, "")} for title in titles.values()],
            "names": list(names), "spans": spans, "file": relative(path),
            "facts": f"{html.escape(about)}{took}; {facts['device']}, {facts['date']}, commit <code>{facts['commit']}</code>. "
                     f"<a href=\"{link(path)}\">{relative(path)}</a>"}


def slots_of(facts):
    words = dict(word.split("=") for word in facts.get("settings", "").split())
    return int(words.get("slots", 0))


def category_of(category):
    """One of the site's colours."""
    return {"upload": "load", "download": "store", "host function": "other"}.get(category, category)


def timelines_page(link):
    """The page in Markdown, its fragment, and the script that holds the data."""
    found = timelines(link)
    data = {name: {key: value for key, value in each.items() if key not in ("lesson", "file")} for name, each in found.items()}
    groups = {}
    for name, each in found.items():
        groups.setdefault(each["lesson"], []).append((name, each["title"]))

    def panel(place, words, chosen):
        options = "".join(f'<optgroup label="{lesson}">' + "".join(
            f'<option value="{name}"{" selected" * (name == chosen)}>{html.escape(title)}</option>' for name, title in group) + "</optgroup>"
            for lesson, group in groups.items())
        return (f'<label for="{place}-select">{words}</label><select id="{place}-select">{options}</select>',
                f'<p class="facts" id="{place}-facts"></p><div id="{place}-chart"></div><p class="said" id="{place}-said"></p>')

    upper, lower = panel("upper", "Above", "04_warp_specialized"), panel("lower", "Below", "05_ws_double_buffer")
    buttons = "".join(f'<button type="button" data-step="{step}" aria-label="{words}">{sign}</button>' for step, sign, words in
                      (("+", "+", "nearer"), ("-", "−", "farther"), ("ArrowLeft", "←", "earlier"), ("ArrowRight", "→", "later"), ("0", "whole", "the whole timeline")))
    key = "".join(f'<span><span class="key {role}"></span> {words}</span>' for role, words in
                  (("load", "load, upload"), ("compute", "compute"), ("store", "store, download"), ("wait", "waits"), ("other", "host function")))
    rows = "".join(f"<tr><td>{html.escape(each['title'])}</td><td>{', '.join(filter(None, (lane['name'] + (': ' + lane['note'] if lane['note'] else '') for lane in each['lanes'])))}</td>"
                   f"<td><a href=\"{link(ROOT / each['file'])}\">{each['file'].rpartition('/')[2]}</a></td></tr>" for each in found.values())
    fragment = f"""
<div class="tool needs-script">
<div class="controls">{upper[0]}{lower[0]}</div>
<div class="controls">{buttons}</div>
<p class="facts">Drag to move, pinch or Ctrl and the wheel to zoom; with the keyboard: + − ← → 0. <span id="timelines-scale"></span></p>
<p class="colour-key">{key}</p>
<div id="timelines-charts" tabindex="0" role="group" aria-label="Two timelines">
{upper[1]}
{lower[1]}
</div>
</div>
{no_script("The viewer needs JavaScript. The files of the list below open in <code>chrome://tracing</code> and Perfetto, too.")}
<h2 id="timelines_all">All recorded timelines</h2>
<div class="scrolls"><table class="markdownTable"><thead><tr><th>timeline</th><th>lanes</th><th>file</th></tr></thead><tbody>{rows}</tbody></table></div>
{scripts("d3.min.js", "lanes.js", "timelines_data.js", "timelines.js")}
"""
    text = ("# The timeline viewer {#timelines}\n\n"
            "What the roles of a block did, and when, as it was recorded: on the GPU by its clock, on the CPU device by the clock of its "
            "model. A lane is a role, a box is what it did; pale boxes are waits.\n\n"
            "@htmlinclude[block] timelines.fragment.html\n")
    return text, fragment, f"const recordedTimelines = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"


# --- Links to these pages -------------------------------------------------------------------------------------------


def links(label, with_code, with_mistakes):
    """[(words, address)] of the live pages that belong to the page of this name. `with_code`: the numbers of lessons that there is
    a single file of; `with_mistakes`: {number: its first mistake}."""
    lesson = label.removeprefix("lesson_") if label.startswith("lesson_") else None
    timeline = label[len("deeper_"):][:2] if label.startswith("deeper_") and label.endswith("_timeline") else lesson
    found = []
    if label == "cost_model" or lesson in PRESET_OF:
        found.append(("its numbers in the pipeline bench" if lesson else "the pipeline bench", "bench.html" + (f"?begin={lesson}" if lesson else "")))
    if label == "cost_model" or timeline in COMPARED:
        pair = COMPARED.get(timeline, ())
        found.append(("the timeline viewer", "timelines.html" + (f"?show={','.join(pair)}" if pair else "")))
    if label == "lab" or lesson in with_mistakes:
        found.append(("its mistakes one by one" if lesson else "the mistakes one by one", "mistakes.html" + (f"#{with_mistakes[lesson]}" if lesson else "")))
    if lesson in with_code:
        found.append(("its code in one file", f"code_{lesson}.html"))
    return found
