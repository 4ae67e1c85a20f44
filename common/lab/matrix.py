#!/usr/bin/env python3
"""Which detector notices which planted mistake? Runs the lab's broken and right programs under every detector.

    matrix.py --programs build-cpu/bin                      the CPU device: prints a table
    matrix.py --programs ... --json FILE                    and writes it, row by row, beside what the file has of other
                                                            lessons; with --continue only what the file lacks is run
    matrix.py --programs ... --check FILE                   and compares it with a recorded one; exit code 1 if it differs
    matrix.py --programs ... --bar                          and demands what docs/lab.md promises; exit code 1 if not kept
    matrix.py --programs ... --seeds 100                    the right programs alone, on so many random schedules, with
                                                            race checks; exit code 1 if there is an alarm
    matrix.py --device gpu --programs build-gpu/bin --debug-programs build-gpu-debug/bin        the GPU; with --budget-s N
                                                            it ends before N seconds; exit code 1 if something is left

The programs are those of the target `lab`. Every run is bounded in time. `caught`: the detector complained; `missed`: it
did not; `hang`: the program had to be killed; `broken`: the detector failed itself, twice. Of right programs, which are run
with the arguments of every mistake, `caught` means a false alarm. Exit code 2: bad input, one line.
"""
import argparse
import concurrent.futures
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from detectors import (BROKEN, CAUGHT, CPU_DETECTORS, GPU_DETECTORS, GPU_MOST_S, HANG, Finding, Programs,  # noqa: E402
                       detectors_for, findings_for, judged, run, without_shape)
from mistakes import ROOT, BadInput, read_mistakes  # noqa: E402

sys.path.append(str(ROOT / "common/results"))
from script import can_be_rewritten, end_with, json_rows, write_whole  # noqa: E402

# The bar of the CPU device.
MOST_SECONDS = 10  # on slow cores, too
ASAN_FACTOR = 3    # AddressSanitizer slows down the search for what explains a wrong result
SEED_LIMIT_S = 120
SEEDS_OF_PROCESS = 5


def right_twins(mistakes):
    """The right program with the arguments of each mistake, once for each arguments; of the kind that has most detectors,
    but without asan and those that compare with the right program."""
    twins = {}
    for mistake in mistakes:
        twins.setdefault((mistake.lesson, mistake.run), dataclasses.replace(
            mistake, name="", mistake="", kind="handshake", notice="", says=""))
    return list(twins.values())


def unknown_of(mistake, findings, arguments):
    """The detectors asked for that are worth a try and have not been run."""
    asked = arguments.detectors.split(",") if arguments.detectors else {*CPU_DETECTORS, *GPU_DETECTORS}
    return [name for name in detectors_for(mistake.kind, arguments.device) if name in asked and name not in findings]


def run_all(mistakes, programs, arguments, known, end=None):
    """[(mistake, its findings by detector)], in the order given. What is known is not run again; the file is written
    whenever a row ends (a pipe: at the end), and nothing begins that may take until after `end`, of time.monotonic()."""
    head = head_of(arguments) if arguments.json else {}
    found = {mistake: dict(known.get(key_of(mistake), {})) for mistake in mistakes}
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(findings_for, mistake, programs, arguments.device, names, found[mistake], end): mistake
                   for mistake in mistakes if (names := unknown_of(mistake, found[mistake], arguments))}
        try:
            for count, done in enumerate(concurrent.futures.as_completed(running), 1):
                found[running[done]].update(done.result())
                if arguments.json and done.result() and can_be_rewritten(arguments.json):
                    write_json(arguments.json, list(found.items()), head)
                if arguments.device == "gpu" and done.result():
                    print(f"{count} of {len(running)}, {time.monotonic() - begin:.0f} s: {title(running[done])}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if arguments.json and not can_be_rewritten(arguments.json):
        write_json(arguments.json, list(found.items()), head)
    return list(found.items())


# --- How long it takes ---------------------------------------------------------------------------------------------------

def left_of(found, arguments):
    """{lesson's number: [(mistake, the detectors that have not been run)]}"""
    left = {}
    for mistake, findings in found:
        if names := unknown_of(mistake, findings, arguments):
            left.setdefault(mistake.number, []).append((mistake, names))
    return left


def print_plan(left):
    """What is to be run on the GPU, and how long it may take if every run lasts until it is killed."""
    for number, rows in left.items():
        names = [name for _, names in rows for name in names]
        print(f"lesson {number}: {len(rows)} programs, {len(names)} findings, "
              f"at most {sum(GPU_MOST_S[name] for name in names)} s")
    sys.stdout.flush()


# --- What is printed ----------------------------------------------------------------------------------------------------

def title(mistake):
    return f"{mistake.number} {mistake.name or 'right: ' + ' '.join(mistake.run)}"


def print_table(found, names):
    """At most 100 columns."""
    width = 99 - sum(max(len(name), 6) + 1 for name in names)
    print(f"{'':{width}}" + "".join(f" {name:{max(len(name), 6)}}" for name in names).rstrip())
    for mistake, findings in found:
        cells = (findings[name].outcome if name in findings else "-" for name in names)
        print(f"{title(mistake)[:width]:{width}}" +
              "".join(f" {cell:{max(len(name), 6)}}" for name, cell in zip(names, cells)).rstrip())


# --- What is written ----------------------------------------------------------------------------------------------------

def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def commit():
    return output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12")


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def versions(device, sanitizer):
    if device == "cpu":
        return {"device": "CPU device", "machine": platform.machine()}
    query = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()[0]
    name, _, driver = query.partition(", ")
    return {"device": name, "driver": driver, "nvcc": output_of("nvcc", "--version").splitlines()[-1],
            "compute-sanitizer": output_of(sanitizer, "--version").splitlines()[-1]}


def key_of(mistake):
    return mistake.lesson, mistake.name, " ".join(mistake.run)


def key_of_row(row):
    return row["lesson"], row.get("name", ""), row["run"]


def as_json(mistake, findings):
    row = {"lesson": mistake.lesson, "name": mistake.name, "kind": mistake.kind, "mistake": mistake.mistake,
           "run": " ".join(mistake.run), "notice": mistake.notice}
    if not mistake.name:
        row = {"lesson": mistake.lesson, "run": row["run"]}
    return {**row, "findings": {name: finding.as_json(whole=bool(mistake.name) and name == mistake.notice)
                                for name, finding in findings.items()}}


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error


def recorded_findings(path, arguments):
    """{key: its findings by detector} of a file that a run before this one left; not of detectors that broke."""
    if not path.is_file():
        return {}
    old = read_json(path)
    recorded_with, now = old["commit"], arguments.commit or commit()
    if recorded_with != now:
        raise BadInput(f"--continue {path}: was recorded with commit {recorded_with}, and this is {now}")
    return {key_of_row(row): {name: Finding(finding["outcome"], finding.get("message", ""), finding["seconds"],
                                                 finding.get("report", ""))
                              for name, finding in row["findings"].items() if finding["outcome"] != BROKEN}
            for row in old["mistakes"] + old["right"]}


def head_of(arguments):
    return {"date": today(), "commit": arguments.commit or commit(), **versions(arguments.device, arguments.sanitizer)}


def write_json(path, found, head):
    """Rows that the file has of lessons that are not run now are kept."""
    old = read_json(path) if path.is_file() else {"mistakes": [], "right": []}
    now = {mistake.lesson for mistake, _ in found}
    rows = {}
    for key, is_right in (("mistakes", False), ("right", True)):
        new = [as_json(mistake, findings) for mistake, findings in found if findings and is_right == (not mistake.name)]
        rows[key] = sorted([row for row in old[key] if row["lesson"] not in now] + new, key=lambda row: row["lesson"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json_rows({**head, **rows}))


# --- What is demanded ---------------------------------------------------------------------------------------------------

def differences(found, path):
    """How the outcomes differ from those of a recorded file."""
    old = read_json(path)
    recorded = {key_of_row(row): row["findings"] for row in old["mistakes"] + old["right"]}
    for mistake, findings in found:
        name = f"{mistake.lesson} {mistake.name or 'right'} {' '.join(mistake.run)}"
        before = recorded.get(key_of(mistake))
        if before is None:
            yield f"{name}: not in {path}"
            continue
        for detector, finding in findings.items():
            was = before.get(detector, {}).get("outcome", "not run")
            if was != finding.outcome:
                yield f"{name}: {detector}: {finding.outcome}, but {was} in {path}"


def complaints(mistake, findings):
    """What a mistake's findings lack of what docs/lab.md promises for the CPU device."""
    name = title(mistake)
    caught = {detector: finding for detector, finding in findings.items() if finding.outcome == CAUGHT}
    hung = [detector for detector, finding in findings.items() if finding.outcome == HANG]
    if hung:
        yield f"{name}: hangs under {', '.join(hung)}"
    slow = [f"{detector} took {finding.seconds:.1f} s" for detector, finding in caught.items()
            if finding.seconds > MOST_SECONDS * (ASAN_FACTOR if detector == "asan" else 1)]
    if slow:
        yield f"{name}: {', '.join(slow)}; the most is {MOST_SECONDS} s"
    if not mistake.name or mistake.kind == "performance":  # it is right
        for detector in caught.keys() - {"counters"}:
            yield f"{name}: false alarm of {detector}: {caught[detector].message}"
    if not mistake.name or mistake.notice not in findings:
        return
    if mistake.notice not in caught:
        yield f"{name}: {mistake.notice} did not notice it"
    elif mistake.says not in caught[mistake.notice].output:
        yield f"{name}: the report of {mistake.notice} does not say '{mistake.says}': {caught[mistake.notice].message}"


def alarms_of_seeds(mistakes, programs, seeds, jobs):
    """The right programs on random schedules, with race checks: one line for each alarm, and the number of schedules."""
    def alarm(twin, seeds):
        # Tests compare what kernels compute on random schedules. Here the question is what the CPU device says.
        unverified = [] if twin.number in ("07", "attention") else ["--no-verify"]
        command = [str(programs.path(twin)), *twin.run, "--threads", "1", "--check-races", "--only-asked", *unverified, "--seed", seeds]
        finding = judged(run(command, SEED_LIMIT_S))
        return "" if finding.outcome == "missed" else f"{title(twin)} --seed {seeds}: {finding.outcome}: {finding.message}"

    def of_part(twin, first, last):
        """One process for all: it computes once what the result should be. After an alarm it says nothing of further
        seeds, so each is tried by itself."""
        if not (together := alarm(twin, f"{first}-{last}")):
            return []
        return list(filter(None, (alarm(twin, str(seed)) for seed in range(first, last + 1)))) or [together]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        twins = right_twins(mistake for mistake in mistakes if mistake.kind == "handshake")
        parts = [pool.submit(of_part, twin, first, min(first + SEEDS_OF_PROCESS - 1, seeds))
                 for twin in twins for first in range(1, seeds + 1, SEEDS_OF_PROCESS)]
        return [line for part in parts for line in part.result()], len(twins) * seeds


FLAGS = (("--schedule", "all"), ("--check-races",), ("--schedule", "all", "--check-races"), ("--seed", "1-3", "--check-races"))


def taken_away(mistakes, programs, jobs):
    """One line for each flag under which a mistake is missed that the plain command notices."""
    def of_mistake(mistake):
        if CPU_DETECTORS["plain command"](programs, mistake).outcome == "missed":
            return []
        command = [str(programs.path(mistake)), *without_shape(mistake.run), "--threads", "1"]
        return [f"{title(mistake)}: {' '.join(flag)} misses what the plain command notices"
                for flag in FLAGS if judged(run([*command, *flag], SEED_LIMIT_S)).outcome == "missed"]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = [mistake for mistake in mistakes if mistake.kind == "handshake" and mistake.number != "07"]
        return [line for lines in pool.map(of_mistake, asked) for line in lines]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, metavar="FOLDER", help="where the programs are")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--debug-programs", type=pathlib.Path, metavar="FOLDER",
                        help="the same of a build whose waits are bounded (GPU)")
    parser.add_argument("--sanitizer", metavar="PATH", help="compute-sanitizer (GPU)",
                        default=shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer")
    parser.add_argument("--lessons", default="", metavar="NN[,NN]", help="only these")
    parser.add_argument("--only", metavar="NAME", help="only mistakes of this name")
    parser.add_argument("--detectors", default="", metavar="NAME[,NAME]", help="only these")
    parser.add_argument("--patches", metavar="FOLDER", help="take the mistakes from FOLDER/NN_name/, as mutate.py does")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="run only what the file of --json lacks")
    parser.add_argument("--budget-s", type=float, metavar="N",
                        help="end before so many seconds, and say what is left (GPU)")
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--commit", metavar="NAME", help="what the file says it was recorded with (default: git's)")
    parser.add_argument("--bar", action="store_true")
    parser.add_argument("--seeds", type=int, default=0, metavar="N")
    parser.add_argument("--flags", action="store_true",
                        help="only run the plain command with each flag: it must notice what it notices without")
    parser.add_argument("--jobs", type=int, default=0, metavar="N",
                        help="programs that run at one time (default: one for each core; on the GPU one)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.device == "gpu" and not arguments.debug_programs:
        raise BadInput("--device gpu: needs --debug-programs")
    if arguments.budget_s is not None and arguments.device == "cpu":
        raise BadInput("--budget-s: only with --device gpu")
    if arguments.go_on and not arguments.json:
        raise BadInput("--continue: needs --json")
    end = None if arguments.budget_s is None else time.monotonic() + arguments.budget_s
    if unknown := set(filter(None, arguments.detectors.split(","))) - {*CPU_DETECTORS, *GPU_DETECTORS}:
        raise BadInput(f"--detectors {', '.join(sorted(unknown))}: must be among "
                       f"{', '.join(CPU_DETECTORS if arguments.device == 'cpu' else GPU_DETECTORS)}")
    numbers = [number for number in arguments.lessons.split(",") if number]
    mistakes = [mistake for mistake in read_mistakes(numbers, arguments.patches)
                if arguments.only in (None, mistake.name) and (arguments.device == "cpu" or not mistake.cpu_device_alone)]
    if not mistakes:
        raise BadInput(f"--only {arguments.only}: no such mistake")
    programs = Programs(arguments.programs, arguments.debug_programs, arguments.sanitizer)
    arguments.jobs = arguments.jobs or (1 if arguments.device == "gpu" else os.cpu_count())
    if arguments.seeds:
        alarms, runs = alarms_of_seeds(mistakes, programs, arguments.seeds, arguments.jobs)
        print("\n".join(alarms + [f"{runs} runs of right programs, {len(alarms)} false alarms"]))
        return 1 if alarms else 0

    if arguments.flags:
        missed = taken_away(mistakes, programs, arguments.jobs)
        print("\n".join(missed) or "each flag notices what the plain command does")
        return 1 if missed else 0

    known = recorded_findings(arguments.json, arguments) if arguments.go_on else {}
    asked = sorted(mistakes + right_twins(mistakes), key=lambda mistake: mistake.lesson)
    if arguments.device == "gpu":
        print_plan(left_of([(mistake, known.get(key_of(mistake), {})) for mistake in asked], arguments))
    found = run_all(asked, programs, arguments, known, end)
    print_table(found, list(CPU_DETECTORS if arguments.device == "cpu" else GPU_DETECTORS))
    complained = list(differences(found, arguments.check)) if arguments.check else []
    if end is not None and (left := left_of(found, arguments)):
        names = ", ".join(title(mistake) for rows in left.values() for mistake, _ in rows)
        complained.append(f"left after {arguments.budget_s:.0f} s: {names}")
    if arguments.bar:
        complained += [line for mistake, findings in found for line in complaints(mistake, findings)]
    for line in complained:
        print(line)
    return 1 if complained else 0


if __name__ == "__main__":
    end_with(main, BadInput)
