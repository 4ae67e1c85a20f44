"""Makes two tables of lesson 07's page: how busy the engines of a GPU were, and how much of an all-reduce was hidden."""
import json

from climb_table import BadInput
from page_requests import markdown, parse_words
from stale import dated

NONE_YET = ["Not recorded yet."]


def newest(folder, name):
    """The text of the file; of the newest one where the name holds a *. None if there is none."""
    path = max(folder.glob(name), default=None)
    return json.loads(path.read_text(encoding="utf-8")) if path else None


def origin(facts, gpu):
    return f"{gpu}, {dated(facts)}, commit `{facts['commit']}`"


def engines_table(line, words, folder):
    """What `<!-- engines: FILE schedules=I,... -->` asks for: from a timeline that `07_streams --trace` wrote, a row for each schedule.

    With schedules= only those in these places of the file, counted from 0.
    """
    name, *words = words or [""]
    values, only = parse_words(line, words, ("schedules",))
    if not name or only:
        raise BadInput(f"{line}: one file is wanted")
    timeline = newest(folder, name)
    if timeline is None:
        return NONE_YET
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
    return markdown(header, rows) + ["", f"{origin(facts, facts['device'])}.{where}"]


def hidden_table(line, words, folder):
    """What `<!-- hidden: FILE -->` asks for: from a run of the experiment allreduce, a row for each number of spare SMs.

    What is hidden is the time saved over the best run without overlap, that with no SMs spared, as a share of the
    shorter of its two parts.
    """
    if len(words) != 1:
        raise BadInput(f"{line}: one file is wanted")
    results = newest(folder, words[0])
    if results is None:
        return NONE_YET
    times, facts = {}, None
    for run in results["runs"]:
        facts = {**run["settings"], **{key: run[key] for key in ("m", "n", "k")}}
        times[run["settings"]["schedule"], int(run["settings"]["spare_sms"])] = (
            run["time_us_median"] / int(run["settings"]["batches"]))
    schedules = ["product alone", "all-reduce alone", "sequential", "overlapped"]
    spares = sorted({spare for _, spare in times})
    if not times or any((schedule, spare) not in times for schedule in schedules for spare in spares) or spares[0] != 0:
        raise BadInput(f"{line}: no whole run of the experiment allreduce is in the file")
    shorter = min(times["product alone", 0], times["all-reduce alone", 0])
    rows = []
    for spare in spares:
        hidden = 100 * (times["sequential", 0] - times["overlapped", spare]) / shorter
        rows.append([f"{spare}"] + [f"{times[schedule, spare]:.4g}" for schedule in schedules] + [f"{hidden:.0f}"])
    header = ["spare SMs"] + [f"{schedule}, µs" for schedule in schedules] + ["hidden, %"]
    return markdown(header, rows) + [
        "", f"{facts['devices']} × {origin(results, results['gpu'])}; C {facts['m']} × {facts['n']}, K {facts['k']}, "
            "times for a batch."]
