"""The tables of timelines that programs wrote with --trace.

    <!-- timeline: 04_warp_specialized 05_ws_double_buffer -->                  how much of its time each role waited and worked
    <!-- phases: 03_double_buffer-slots_1 04_warp_specialized -->               whether a block's copies and its products take turns
    <!-- engines: FILE schedules=I,... -->                                      how busy the engines of a GPU were
    <!-- end -->

The names are those of files in docs/results/traces, those of `timeline` and `phases` without .json.

Of `phases` a timeline that is not recorded yet is a row that says so. A copy is in flight from its `load` on. It has landed at the
latest when compute's wait for it ends. Where compute did not wait, it landed before that, nobody knows when: then it counts as in
flight for as long as the shortest copy that was waited for, so its time in flight is never made longer than it was.
"""
import json

from climb_table import BadInput
from page_requests import markdown, parse_words
from stale import dated

WORK = ("load", "compute", "store")
NONE_YET = "No timelines have been recorded yet: `common/results/record.py` does it."
BIN_US = 0.25
WAITED_US = 0.5  # shorter waits may be none: the recording itself takes 0.2


def read_timeline(path):
    try:
        timeline = json.loads(path.read_text(encoding="utf-8"))
        if not timeline["metadata"]["summary"]:
            raise BadInput(f"{path}: the summary of the timeline is empty")
        return timeline
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no timeline: {error!r}") from error


def shares(timeline):
    """For each kind of role ("compute", not "compute 1") its percentages of waiting and of work, averages of all."""
    roles = {}
    for role in timeline["metadata"]["summary"]:
        times = role["per_tile"]
        work = sum(times[kind] for kind in WORK)
        whole = work + times["wait"] + times["other"]
        roles.setdefault(role["role"].rstrip(" 0123456789"), []).append((role["waited_percent"], 100 * work / whole))
    return {name: tuple(sum(column) / len(column) for column in zip(*figures)) for name, figures in roles.items()}


def slots_ahead(timeline):
    """How many more slots the loader has begun to fill than compute has taken, on average over the moments at which
    compute asks for the next. None on the CPU device, which records a wait only where there was one."""
    if timeline["metadata"]["unit"] != "ns":
        return None
    events = timeline["traceEvents"]
    lanes = {(event["pid"], event["args"]["name"]): event["tid"] for event in events if event["name"] == "thread_name"}
    blocks = {block for block, name in lanes if name == "loader"}
    ahead = []
    for block in blocks:
        spans = [event for event in events if event["ph"] == "X" and event["pid"] == block]
        compute = lanes.get((block, "compute 0"), lanes.get((block, "compute")))
        loads = [span["ts"] + span["dur"] for span in spans
                 if span["tid"] == lanes[block, "loader"] and span["name"] == "load"]
        asks = sorted(span["ts"] for span in spans if span["tid"] == compute and is_wait_for_tile(span["name"]))
        ahead += [sum(load <= ask for load in loads) - taken for taken, ask in enumerate(asks)]
    return sum(ahead) / len(ahead) if ahead else None


def origin(names, timelines):
    """Where the timelines come from, what recording them cost, and links to the files."""
    facts = timelines[0]["metadata"]
    slower = [100 * (float(t["metadata"]["launch_us"]) / float(t["metadata"]["untraced_launch_us"]) - 1)
              for t in timelines if "untraced_launch_us" in t["metadata"]]
    cost = f"; recording slowed the kernels by {' and '.join(f'{percent:.0f} %' for percent in slower)}" if slower else ""
    links = ", ".join(f"[{name[:2]}](../docs/results/traces/{name}.json)" for name in names)
    return (f"{facts['device']}, {dated(facts)}, commit `{facts['commit']}`, {facts['shape']}, block 0{cost}. "
            f"The timelines: {links}.")


def timeline_table(names, folder):
    """The lines that stand for `<!-- timeline: NAMES -->`; files are looked for in `folder`."""
    paths = [folder / f"{name}.json" for name in names]
    if not names or not all(path.exists() for path in paths):
        return [NONE_YET]
    timelines = [read_timeline(path) for path in paths]
    figures = [shares(timeline) for timeline in timelines]
    header, rows = ["role"], []
    for name in names:
        header += [f"{name[:2]}: waits, %", "works, %"]
    for role in sorted({role for figure in figures for role in figure}, key=lambda role: (role != "loader", role)):
        row = [role]
        for figure in figures:
            row += [f"{percent:.0f}" for percent in figure[role]] if role in figure else ["", ""]
        rows.append(row)
    lines = markdown(header, rows)
    ahead = [(name, slots_ahead(timeline)) for name, timeline in zip(names, timelines)]
    if all(figure is not None for _, figure in ahead):
        words = ", ".join(f"{figure:.1f} in {name[:2]}" for name, figure in ahead)
        lines += ["", f"Slots that the loader is ahead when compute asks for the next one, on average: {words}."]
    return lines + ["", origin(names, timelines)]


def spans_of_block(timeline):
    """For each lane of block 0 its name and its spans (name, begin, end), in microseconds, in order of time."""
    names = {event["tid"]: event["args"]["name"] for event in timeline["traceEvents"]
             if event["name"] == "thread_name" and event["pid"] == 0}
    lanes = {name: [] for name in names.values()}
    for event in timeline["traceEvents"]:
        if event["ph"] == "X" and event["pid"] == 0:
            lanes[names[event["tid"]]].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    return {name: sorted(spans, key=lambda span: span[1]) for name, spans in lanes.items()}


def is_wait_for_tile(name):
    """Whether a consumer waits for the loader. Timelines recorded before barriers were called as in the source say "loaded"."""
    return name.startswith(("wait pipe_lc.full", "wait loaded"))


def is_wait_for_copies(name):
    return name == "wait copies" or is_wait_for_tile(name)


def copies_in_flight(lanes):
    """Begin and end of every copy."""
    loaders = [lane for lane, spans in lanes.items() if any(span[0] == "load" for span in spans)]
    consumers = [lane for lane, spans in lanes.items() if any(is_wait_for_copies(span[0]) for span in spans)]
    copies = []
    for loader in loaders:
        loads = [span for span in lanes[loader] if span[0] == "load"]
        # Whoever copies for itself waits for itself; a loader's tile is there when the first of its consumers has seen it.
        waiting = [loader] if loader in consumers else consumers
        waits = [[span for span in lanes[lane] if is_wait_for_copies(span[0])] for lane in waiting]
        steps = len(waits[0]) if waits else 0
        if not steps or len(loads) % steps or any(len(one) != steps for one in waits):
            raise BadInput(f"{loader}: has {len(loads)} loads, and waits for {', '.join(str(len(one)) for one in waits)}")
        parts = len(loads) // steps  # of a step: a thread's copies of A, and those of B
        loads = [("load", loads[i][1], loads[i + parts - 1][2]) for i in range(0, len(loads), parts)]
        seen = [min(one[i][2] for one in waits) for i in range(len(loads))]
        waited = [all(one[i][2] - one[i][1] > WAITED_US for one in waits) for i in range(len(loads))]
        flights = [end - load[1] for load, end, really in zip(loads, seen, waited) if really]
        shortest = min(flights, default=0)
        for load, end, really in zip(loads, seen, waited):
            copies.append((load[1], end if really else min(end, max(load[2], load[1] + shortest))))
    return copies


def products(lanes):
    return [(begin, end) for spans in lanes.values() for name, begin, end in spans if name == "compute"]


def covered(intervals, begin, width, bins):
    """For each bin, how many intervals lie in it on average."""
    series = [0.0] * bins
    for first, last in intervals:
        for i in range(max(0, int((first - begin) / width)), min(bins, int((last - begin) / width) + 1)):
            low, high = begin + i * width, begin + (i + 1) * width
            series[i] += max(0.0, min(last, high) - max(first, low)) / width
    return series


def union_length(intervals):
    length, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        length += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return length


def intersection(first, second):
    """Of two unions of intervals."""
    return max(0.0, union_length(first) + union_length(second) - union_length(first + second))  # rounding may leave less


def correlation(first, second):
    """Pearson's; None where one of them never changes."""
    count = len(first)
    means = sum(first) / count, sum(second) / count
    sums = [sum((a - means[0]) ** 2 for a in first), sum((b - means[1]) ** 2 for b in second),
            sum((a - means[0]) * (b - means[1]) for a, b in zip(first, second))]
    return sums[2] / (sums[0] * sums[1]) ** 0.5 if sums[0] > 0 and sums[1] > 0 else None


def phases(timeline):
    """Shares of the block's time in percent: copies alone, both, products alone, neither; and the correlation."""
    lanes = spans_of_block(timeline)
    copying, computing = copies_in_flight(lanes), products(lanes)
    if not copying or not computing:
        raise BadInput("the timeline has no copies or no products")
    begin, end = min(copying)[0], max(last for _, last in computing)
    whole = end - begin
    both = intersection(copying, computing)
    copies_alone, products_alone = union_length(copying) - both, union_length(computing) - both
    bins = max(2, int(whole / BIN_US))
    shares = [copies_alone, both, products_alone, whole - copies_alone - both - products_alone]
    return [100 * share / whole for share in shares], correlation(covered(copying, begin, BIN_US, bins),
                                                                  covered(computing, begin, BIN_US, bins))


def row(name, timeline):
    settings = dict(word.split("=") for word in timeline["metadata"]["settings"].split())
    lanes = spans_of_block(timeline)
    named = {span[0] for spans in lanes.values() for span in spans if is_wait_for_tile(span[0])}
    slots = str(len(named)) if named else settings["slots"]
    shares, together = phases(timeline)
    roles = "yes" if "loader" in lanes else "no"
    # What was predicted: with one slot it is either being filled or being read, whoever does it.
    predicted = "take turns" if slots == "1" else "overlap"
    return [f"[{name[:2]}](../docs/results/traces/{name}.json)", roles, slots, predicted] + [f"{share:.0f}" for share in shares] + [
        "" if together is None else f"{together:+.2f}"]


def phase_table(names, folder):
    """The lines that stand for `<!-- phases: NAMES -->`; files are looked for in `folder`."""
    if not names:
        raise BadInput("phases: names of timelines are missing")
    header = ["lesson", "roles", "slots", "predicted", "copies alone, %", "both, %", "products alone, %", "neither, %",
              "correlation"]
    rows, facts = [], []
    for name in names:
        path = folder / f"{name}.json"
        if not path.exists():
            rows.append([f"{name}: not recorded yet"] + [""] * (len(header) - 1))
            continue
        timeline = json.loads(path.read_text(encoding="utf-8"))
        try:
            rows.append(row(name, timeline))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error
        facts.append(timeline["metadata"])
    origin = sorted({f"{fact['device']}, {dated(fact)}, commit `{fact['commit']}`, {fact['shape']}" for fact in facts})
    return markdown(header, rows) + ["", f"{'; '.join(origin) or 'Nothing is recorded yet'}. Of block 0, from its first copy "
                                         f"to its last product; correlation over bins of {BIN_US} µs."]


def engines_table(line, words, folder):
    """What `<!-- engines: FILE schedules=I,... -->` asks for: from a timeline that `07_streams --trace` wrote, a row for each schedule.

    With schedules= only those in these places of the file, counted from 0.
    """
    name, *words = words or [""]
    values, only = parse_words(line, words, ("schedules",))
    if not name or only:
        raise BadInput(f"{line}: one file is wanted")
    path = max(folder.glob(name), default=None)
    if path is None:
        return ["Not recorded yet."]
    timeline = json.loads(path.read_text(encoding="utf-8"))
    facts = timeline["metadata"]
    uses = facts["summary"]
    if "schedules" in values:
        places = values["schedules"].split(",")
        if any(not place.isdecimal() or int(place) >= len(uses) for place in places):
            raise BadInput(f"{line}: schedules={values['schedules']}: the file has schedules 0 to {len(uses) - 1}")
        uses = [uses[int(place)] for place in places]
    experiments = list(dict.fromkeys(use["experiment"] for use in uses))
    engines = [engine for engine in uses[0]["busy_us"]
               if engine != "host function" and any(use["busy_us"][engine] > 0 for use in uses)]
    several = any(use["device"] > 0 for use in uses)
    header = ["schedule"] + ["GPU"] * several + ["ms"] + [f"{engine}, %" for engine in engines] + ["two, %", "three, %"]
    rows = []
    for use in uses:
        whole = use["length_us"]
        shares = [use["busy_us"][engine] for engine in engines] + [use["two_at_once_us"], use["three_at_once_us"]]
        name = use["schedule"] if len(experiments) == 1 else f"{use['experiment']}, {use['schedule']}"
        rows.append([name] + [str(use["device"])] * several + [f"{whole / 1e3:.2f}"] +
                    [f"{100 * share / whole:.0f}" for share in shares])
    where = f" {experiments[0]}." if len(experiments) == 1 else ""
    return markdown(header, rows) + ["", f"{facts['device']}, {dated(facts)}, commit `{facts['commit']}`.{where}"]
