"""The tables of the lab: who noticed which planted mistake, in the newest files of docs/results/lab: one of the CPU device, and
of GPUs one for each lesson, `2026-11-24-h200-05.json`.

    <!-- lab: matrix -->          for each device a row for each mistake, a column for each detector
    <!-- lab: summary -->         for each kind of mistake and detector how many it noticed; and what nothing noticed
    <!-- lab: messages -->        what was said of each mistake of order or memory
    <!-- lab: false-alarms -->    what the detectors said of the right kernels
    <!-- lab: headline -->        how many each device notices, in a sentence
    <!-- lab: lesson 05 -->       what became of the results of this lesson's mistakes of order and memory on the GPU
    <!-- lab: report 05 NAME -->  what the CPU device prints of this mistake, word for word; lines=4: the first four lines
    <!-- lab: mutants -->         what became of the lessons without one synchronisation statement
    <!-- end -->

Where the GPU's half has not been recorded, its columns are missing.
"""
import json
import re
import textwrap
from pathlib import Path

from climb_table import BadInput, folder_of
from fingerprint import MISTAKES, planted
from page_requests import left_aligned, markdown
from record_files import shared
from stale import dated

ROOT = Path(__file__).resolve().parents[2]
NONE_YET = "Nothing has been recorded yet: `common/lab/matrix.py --json` does it."
# What a detector says of the right kernel, run with the same arguments, too, is worth nothing: `alarm`.
SIGNS = {"caught": "yes", "missed": "–", "hang": "hang", "broken": "tool failed", "alarm": "always"}
IN_WORDS = {"compiler": "the compiler", "bounded": "a Debug build, which is slower, with time limits for waits,"}
SILENT = ("missed", "broken", "alarm")
KINDS = ("handshake", "memory", "performance")
HALVES = ("cpu", "gpu")
VERSIONS = ("driver", "nvcc", "compute-sanitizer")
NUMBERS = {"06_any_shape": "any", "05_attention": "attention"}


def number_of(lesson):
    """What the lab calls a lesson."""
    return NUMBERS.get(lesson, lesson[:2])


def read(path, half):
    try:
        return {**json.loads(path.read_text(encoding="utf-8")), "half": half}
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error!r}") from error


def newest(folder, half):
    """What the newest file of this half holds, of GPUs the newest of each lesson; or None."""
    if half == "gpu":
        parts = [part for path in sorted(folder.glob("*.json")) for part in shared(path)]
        of_lessons = {part.document["record"].replace("any", "06z"): part for part in sorted(parts, key=lambda part: part.document["date"])}
        return merged([read(part, part.path.stem.upper()) for _, part in sorted(of_lessons.items())])
    path = max(folder.glob(f"*-{half}.json"), default=None)
    return path and merged([read(path, "CPU")])


def merged(parts):
    """One half of several files, which it also keeps as they are: in `parts`. None if there is none."""
    if not parts:
        return None
    names = {key: " or ".join(sorted({part[key] for part in parts})) for key in ("half", "device")}
    rows = {key: [row for part in parts for row in part[key]] for key in ("mistakes", "right") if key in parts[0]}
    return {**parts[0], **names, **rows, "parts": parts}


def detectors_of(results):
    """Their names in the order of the file."""
    return list(dict.fromkeys(name for row in results["mistakes"] for name in row["findings"]))


def outcomes_of(results):
    """{mistake's key: {detector: outcome}}"""
    alarms = {(row["lesson"], row["run"], name) for row in results["right"] for name, finding in row["findings"].items()
              if finding["outcome"] == "caught"}
    return {key(row): {name: "alarm" if finding["outcome"] == "caught" and (row["lesson"], row["run"], name) in alarms
                       else finding["outcome"] for name, finding in row["findings"].items()}
            for row in results["mistakes"]}


def key(row):
    return row["lesson"], row["name"]


def planted_in(lesson):
    """The mistakes of a lesson (fingerprint.py); None if the tree has no file of them."""
    path = ROOT / folder_of(lesson) / "broken" / MISTAKES
    return planted(path.read_text(encoding="utf-8")) if path.is_file() else None


def taken_out(row):
    """Whether the tree no longer has the mistake."""
    here = planted_in(row["lesson"])
    return here is not None and row["name"] not in here


def address(row):
    """Of the mistake's heading, from the lesson's folder."""
    line, _ = (planted_in(row["lesson"]) or {}).get(row["name"], ("", ""))
    return f"broken/{MISTAKES}" + f"#L{line}" * bool(line)


def link(row):
    return f"[{number_of(row['lesson'])} {row['name']}](../{folder_of(row['lesson'])}/{address(row)})"


def matrix(halves):
    """A table for each device, for one with the detectors of both would be too wide for any screen."""
    lines = []
    for half in halves:
        outcomes, names = outcomes_of(half), detectors_of(half)
        on_cpu = half["half"] == "CPU"
        header = ["on the CPU device", "kind", "what was done"] if on_cpu else [f"on an {half['half']}"]
        rows = [[link(row)] + ([row["kind"], row["mistake"]] if on_cpu else []) +
                [SIGNS.get(outcomes[key(row)].get(name), "") for name in names] for row in half["mistakes"]]
        lines += [""] * bool(lines) + left_aligned(header + names, rows)
    return lines


def summary(halves):
    rows, outcomes = [], {half["half"]: outcomes_of(half) for half in halves}
    for half, name in [(half["half"], name) for half in halves for name in detectors_of(half)]:
        row = [f"{half}: {name}"]
        for kind in KINDS:
            tried = [outcomes[half][key(mistake)][name] for mistake in halves[0]["mistakes"]
                     if mistake["kind"] == kind and name in outcomes[half].get(key(mistake), {})]
            others = "".join(f", {tried.count(name)} {SIGNS[name]}" for name in ("hang", "broken", "alarm") if name in tried)
            row.append(f"{tried.count('caught')} of {len(tried)}" + others if tried else "")
        rows.append(row)
    lines = markdown(["noticed by"] + list(KINDS), rows)
    unnoticed = {half: [mistake for mistake in halves[0]["mistakes"] if key(mistake) in found
                        and all(outcome in SILENT for outcome in found[key(mistake)].values())]
                 for half, found in outcomes.items()}
    for half in list(unnoticed)[1:]:
        here = [mistake for mistake in unnoticed[half] if mistake["kind"] != "performance"]
        order = [key(mistake) for mistake in halves[0]["mistakes"] if mistake["kind"] != "performance"]
        tried = sum(one in outcomes[half] for one in order)
        others = f"; not tried there yet: {len(order) - tried}" if tried < len(order) else ""
        lines += ["", f"On the {half} nothing notices {len(here)} of the {tried} mistakes of order and memory: {links(here)}{others}."]
    who = "either device" if len(halves) > 1 else "the CPU device"
    names = links([row for row in halves[0]["mistakes"] if all(row in rows for rows in unnoticed.values())])
    return lines + ["", f"No detector of {who} notices: {names}." if names else f"Some detector of {who} notices each."]


def links(rows):
    return ", ".join(link(row) for row in rows)


def without_addresses(message):
    """What AddressSanitizer found, without where that lay in this run."""
    found = re.search(r"(AddressSanitizer: \S+) on address .*?((?:READ|WRITE) of size \d+)", message)
    return f"{found[1]}, {found[2]}" if found else message


def quoted(message, most=400):
    text = without_addresses(message).replace("|", "/").replace("`", "'")
    return f"`{text[:most]}`"


def messages(halves):
    rows = []
    for row in halves[0]["mistakes"]:
        said = next((row["findings"][name] for name in (row["notice"], *row["findings"])
                     if row["findings"].get(name, {}).get("outcome") == "caught"), None)
        if row["kind"] != "performance" and said:
            rows.append([link(row), quoted(said["message"])])
    lines = left_aligned(["mistake", "what the CPU device says"], rows)
    for half in halves[1:]:
        lines += ["", f"And what the detectors of the {half['half']} say, the first of each row that says more than that the "
                  "result is wrong:", ""] + gpu_messages(half)
    return lines


def gpu_messages(half):
    outcomes, rows = outcomes_of(half), []
    for row in half["mistakes"]:
        name = next((name for name in ("bounded", "compiler", *row["findings"])
                     if name != "result" and outcomes[key(row)].get(name) == "caught"), None)
        if row["kind"] != "performance" and name:
            rows.append([link(row), name, quoted(row["findings"][name]["message"], 240)])
    return left_aligned(["mistake", "detector", "its words"], rows)


def false_alarms(halves):
    rows, runs = [], 0
    for half in halves:
        for row in half["right"]:
            for name, finding in row["findings"].items():
                runs += 1
                if finding["outcome"] != "missed":
                    rows.append([f"{number_of(row['lesson'])} `{row['run']}`", f"{half['half']}: {name}", finding["outcome"],
                                 finding.get("message", "").replace("|", "/")[:160]])
    if not rows:
        return [f"None, in {runs} runs."]
    lines = left_aligned(["the right kernel of", "detector", "outcome", "its words"], rows)
    return lines + ["", f"The other {runs - len(rows)} runs of right kernels were quiet."]


def mutants(results):
    names = list(dict.fromkeys(row["lesson"] for row in results["mutants"]))
    who = ["compiler", "result", "schedules", "races", None]
    rows = [[number_of(name)] + [str(sum(row["lesson"] == name and row["noticed_by"] == detector for row in results["mutants"]))
                          for detector in who] for name in names]
    lines = markdown(["lesson"] + [f"first noticed by {detector}" for detector in who[:-1]] + ["survived"], rows)
    survivors = [[f"`{row['file']}`", f"{row['mistake']}", row.get("reason", "")] for row in results["mutants"]
                 if row["noticed_by"] is None]
    return lines + ["", "The survivors, and why:", ""] + left_aligned(["file", "mutant", "why it survives"], survivors)


def headline(halves):
    """What each device makes of the mistakes of order and memory, in a sentence."""
    rows = [row for row in halves[0]["mistakes"] if row["kind"] != "performance"]
    text = f"The lab plants {len(rows)} mistakes of order and memory in copies of lessons."
    for half in halves:
        outcomes = outcomes_of(half)
        found = [set(outcomes[key(row)].values()) for row in rows if key(row) in outcomes]
        named, hangs = sum("caught" in one for one in found), sum("caught" not in one and "hang" in one for one in found)
        if half["half"] == "CPU":
            text += f" The CPU device notices {'all' if named == len(rows) else named} of them."
        else:
            text += (f" {len(found)} were also tried on an {half['half']}, where checks of the result, compute-sanitizer, "
                     f"waits with a time limit and the compiler together notice {named}; "
                     f"{hangs} more hang without a word, and {len(found) - named - hangs} pass everything.")
    return textwrap.wrap(text + " [The lab](../docs/lab.md) shows each report.", 120, break_long_words=False,
                         break_on_hyphens=False)


def lesson(half, number):
    """A sentence or two for the page of a lesson."""
    if half["half"] == "CPU":
        return ["Not recorded on a GPU yet."]
    outcomes = outcomes_of(half)
    by_result = {"caught": [], "hang": [], "missed": []}
    for row in half["mistakes"]:
        if number_of(row["lesson"]) == number and row["kind"] != "performance":
            by_result[outcomes[key(row)]["result"]].append(row)
    total = sum(map(len, by_result.values()))
    if not total:
        return ["The mistakes in [broken](broken/mistakes.patch) are not recorded on a GPU yet."]
    ends = [f"{len(rows)} {verb}{'s' if len(rows) == 1 else ''}{how}"
            for rows, verb, how in ((by_result["caught"], "end", " in a wrong result or an error"), (by_result["hang"], "hang", ""),
                                    (by_result["missed"], "give", " the right result")) if rows]
    text = (f"On an {half['half']}, of {total} mistakes of order and memory in [broken](broken/mistakes.patch), "
            f"{' and '.join([', '.join(ends[:-1]), ends[-1]] if ends[1:] else ends)}.")
    noticed_by = {}
    for row in by_result["missed"]:
        who = " and ".join(IN_WORDS.get(name, name) for name, outcome in outcomes[key(row)].items()
                           if outcome in ("caught", "hang"))
        noticed_by.setdefault(who[:1].upper() + who[1:], []).append(f"[{row['name']}]({address(row)})")
    for who, names in sorted(noticed_by.items(), reverse=True):
        # Only the GPU's detectors are looked at here: the CPU device may notice these.
        text += f" {who or 'On the GPU nothing'} {'notice' if ' and ' in who else 'notices'} {' and '.join(part for part in (', '.join(names[:-1]), names[-1]) if part)}."
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def report(halves, number, name, most=None):
    """The report, or as many lines of it, as a block of code."""
    for row in halves[0]["mistakes"]:
        if number_of(row["lesson"]) == number and row["name"] == name:
            words = row["findings"].get(row["notice"], {}).get("report")
            lines = words.splitlines() if words else []
            cut = ["  ..."] if len(lines[:most]) < len(lines) else []
            return ["```", *lines[:most], *cut, "```"] if lines else [NONE_YET]
    return None


def tool(halves, number, name, detector):
    """What a tool said on a GPU, as a block of code: the recorded line, cut where the tool begins a new one."""
    for half in halves[1:]:
        for row in half["mistakes"]:
            found = row["findings"].get(detector, {})
            if number_of(row["lesson"]) == number and row["name"] == name and found.get("message"):
                words = re.sub(r" (?=block \d+, warp|at \S*\(|in \S+:\d|by thread|and (?:Read|Write) access|Barrier is|Device Frame)", "\n    ",
                               found["message"])
                return ["```", *words.splitlines(), "```"]
    return None


TABLES = {"matrix": matrix, "summary": summary, "messages": messages, "false-alarms": false_alarms,
          "headline": headline}


def origin(results, versions):
    facts = [results["device"]] + [f"{name} {results[name]}" for name in versions if name in results]
    return f"{', '.join(facts)}; {dated(results)}, commit `{results['commit']}`."


def origins(half, versions):
    """A line for each GPU, date and commit of the files."""
    by_origin = {}
    for part in half["parts"]:
        if part["mistakes"]:
            number = number_of(part["mistakes"][0]["lesson"])
            by_origin.setdefault(origin(part, versions), []).append("06 for any shape" if number == "any" else number)
    return [f"{', '.join(numbers)}: {text}" if len(by_origin) > 1 else text for text, numbers in by_origin.items()]


def lab_table(line, words, folder):
    """The lines that stand for `<!-- lab: WORDS -->`; files are looked for in `folder`."""
    of_lesson = len(words) == 2 and words[0] == "lesson"
    shorter = re.fullmatch(r"lines=([1-9]\d*)", words[3]) if len(words) == 4 and words[0] == "report" else None
    of_mistake = words[0] == "report" and (len(words) == 3 or shorter is not None)
    of_tool = len(words) == 4 and words[0] == "tool"
    if not of_lesson and not of_mistake and not of_tool and (len(words) != 1 or words[0] not in (*TABLES, "mutants")):
        raise BadInput(f"{line}: must ask for one of {', '.join((*TABLES, 'lesson NN', 'report NN NAME [lines=N]', 'tool NN NAME DETECTOR', 'mutants'))}")
    if words[0] == "mutants":
        results = newest(folder, "mutants")
        return mutants(results) + ["", origin(results, VERSIONS)] if results else [NONE_YET]
    halves = [half for half in (newest(folder, name) for name in HALVES) if half]
    if not halves or halves[0]["half"] != "CPU":
        return [NONE_YET]
    # A file may hold mistakes that were taken out since.
    there = {key(row) for row in halves[0]["mistakes"] if not taken_out(row)}
    halves = [merged([{**part, "mistakes": [row for row in part["mistakes"] if key(row) in there]} for part in half["parts"]])
              for half in halves]
    if of_mistake or of_tool:
        lines = report(halves, *words[1:3], int(shorter[1]) if shorter else None) if of_mistake else tool(halves, *words[1:])
        if lines is None:
            raise BadInput(f"{line}: the lab has no mistake {' '.join(words[1:])}")
        return lines
    if of_lesson:
        halves = [part for part in halves[-1]["parts"] if part["half"] != "CPU" and part["mistakes"] and
                  number_of(part["mistakes"][0]["lesson"]) == words[1]] or halves[:1]
        return lesson(halves[0], words[1]) + ["", origin(halves[0], ())]
    versions = () if words == ["headline"] else VERSIONS
    return TABLES[words[0]](halves) + [""] + [line for half in halves for line in origins(half, versions)]
