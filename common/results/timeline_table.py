"""The table of timelines that lessons wrote with --trace: how much of its time each role waited and worked.

    <!-- timeline: 04_warp_specialized 05_ws_double_buffer -->
    <!-- end -->

The names are those of files in docs/results/traces, without .json.
"""
import json

from climb_table import BadInput
from page_requests import markdown
from phase_table import is_wait_for_tile
from stale import dated

WORK = ("load", "compute", "store")
NONE_YET = "No timelines have been recorded yet: `common/results/record.py` does it."


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
