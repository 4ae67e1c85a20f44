"""What may notice a mistake, on either device: each detector runs a program, bounded in time, and judges what it says.

A detector is a function (programs, mistake) -> Finding, where `programs` says where the lab's programs are. Given a
mistake whose name is empty it judges the right program, with the mistake's arguments.
"""
import dataclasses
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile
import time

from mistakes import ROOT, BadInput

CAUGHT, MISSED, HANG = "caught", "missed", "hang"
BROKEN = "broken"  # the tool failed: nothing is known of the program
# A counter or a time that grows by less is no finding.
GROWS_BY = 1.1
SLOWER_BY = 1.03


@dataclasses.dataclass
class Programs:
    """Where the programs of the lab are."""
    folder: pathlib.Path        # build/bin
    debug_folder: pathlib.Path  # the same of a build whose waits are bounded; GPU
    sanitizer: str              # compute-sanitizer; GPU
    tool_limit_s: float = 0     # how long it may take; GPU

    def path(self, mistake, flavour=""):
        name = mistake.program if mistake.name else f"right_{mistake.number}"
        return self.folder / (name + flavour)


@dataclasses.dataclass
class Finding:
    """What a detector says of a program."""
    outcome: str       # caught, missed, hang or broken
    message: str = ""  # its first lines
    seconds: float = 0  # of processor time, of all its runs
    output: str = ""   # all it said

    def as_json(self, whole=False):
        """whole: with the report as it was printed, too."""
        result = {"outcome": self.outcome, "seconds": round(self.seconds, 1)}
        if self.message:
            result["message"] = self.message
        if whole and (report := report_of(self.output)):
            result["report"] = report
        return result


@dataclasses.dataclass
class Ran:
    """A program that has ended, or was ended."""
    status: int  # exit code; negative: a signal
    output: str
    seconds: float
    timed_out: bool


def run(command, limit_s):
    """Runs a command for at most so many seconds; then it is killed, with what it has started. In what it says, paths of
    the repository begin at its root."""
    if not pathlib.Path(command[0]).exists():
        raise BadInput(f"{command[0]}: not built; build the target lab")
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        end, timed_out = time.monotonic() + limit_s, False
        # wait4 says how much processor time was used, which a busy machine does not change.
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            if not timed_out and time.monotonic() > end:
                timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.005)
        _, status, used = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read().decode(errors="replace").replace(f"{ROOT}/", "")
        return Ran(process.returncode, output, used.ru_utime + used.ru_stime, timed_out)


def first_lines(output, most=400):
    """What a person would read first: the error, without the program's name, in one line."""
    lines = [line.strip() for line in output.splitlines()]
    begin = next((i for i, line in enumerate(lines) if "error: " in line or "ERROR: " in line), None)
    if begin is None:
        return ""
    lines[begin] = re.sub(r"^.*?error: (kernel '[^']*': )?", "", lines[begin])
    return " ".join(line for line in lines[begin:] if line)[:most]


def report_of(output, most=40):
    """The error as it was printed, line by line, from the warning before it on. Each speaker's first error counts: lesson 07
    says what is wrong, and the CPU device why. Empty if there was none."""
    lines = [line.rstrip() for line in output.splitlines()]
    begin, end, speakers = None, len(lines), set()
    for i, line in enumerate(lines):
        if not (said := re.search(r"(\S+: |^)(error|warning): ", line)):
            continue
        if said[2] == "error" and said[1] in speakers:
            end = i
            break
        begin = i if begin is None else begin
        if said[2] == "error":
            speakers.add(said[1])
    return "\n".join(lines[begin:end][:most]).strip() if speakers else ""


def judged(ran):
    """Of a program that checks itself: caught if it failed."""
    if ran.timed_out:
        return Finding(HANG, "", ran.seconds, ran.output)
    if ran.status == 2:
        raise BadInput(first_lines(ran.output) or ran.output)
    if ran.status == 0:
        return Finding(MISSED, "", ran.seconds, ran.output)
    return Finding(CAUGHT, first_lines(ran.output) or f"ended with status {ran.status}", ran.seconds, ran.output)


def results_of(command, limit_s):
    """The runs in the result file that a program writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "results.json"
        ran = run([*command, "--json", str(path)], limit_s)
        if ran.timed_out or not path.exists():
            return [], ran
        return json.loads(path.read_text(encoding="utf-8"))["runs"], ran


def without_shape(arguments):
    place = next(place for place, argument in enumerate(arguments) if argument in ("--shape", "--length"))
    return list(arguments[:place]) + list(arguments[place + 2:])


# --- The CPU device -----------------------------------------------------------------------------------------------------

CPU_LIMIT_S = 60
ONE_THREAD = ("--threads", "1")  # of the host, so that processor time is time
DEFAULT_SCHEDULE = ("--schedule", "round-robin/late", "--only-asked")
ALL_SCHEDULES = ("--schedule", "all", "--only-asked")


def plain_command(programs, mistake):
    """The program as a learner runs it: at its default shape, with what it checks without being asked."""
    return judged(run([str(programs.path(mistake)), *without_shape(mistake.run), *ONE_THREAD], CPU_LIMIT_S))


def on_cpu(*options, flavour=""):
    """The detector that runs the program with these options."""
    def detect(programs, mistake):
        command = [str(programs.path(mistake, flavour)), *mistake.run, *ONE_THREAD, *options]
        return judged(run(command, CPU_LIMIT_S))
    return detect


# What each costs a kernel time; cycles are those of the virtual clock, and so are the microseconds of streams.
COSTS = ("global_read_sectors", "global_write_sectors", "shared_wavefronts", "bank_conflicts", "cluster_bytes", "cycles",
         "virtual_us")


def costs_of(row):
    """What the CPU device counted in a run: in its kernel, or where many operations of streams were timed, the time."""
    return row.get("counters") or {"virtual_us": row["time_us_median"]}


def counters(programs, mistake):
    """Caught if the CPU device counts more than for the right kernel, or if copies and products overlap less."""
    figures, seconds = [], 0.0
    for program in (programs.path(dataclasses.replace(mistake, name="")), programs.path(mistake)):
        runs, ran = results_of([str(program), *mistake.run, *ONE_THREAD], CPU_LIMIT_S)
        if not runs:
            return judged(ran)
        figures.append(costs_of(runs[0]))
        seconds += ran.seconds
    right, broken = figures
    grown = [f"{name} {right[name]:.0f} -> {broken[name]:.0f}" for name in COSTS
             if name in right and broken[name] > GROWS_BY * right[name]]
    if "overlap_cycles" in right and broken["overlap_cycles"] * GROWS_BY < right["overlap_cycles"]:
        grown.append(f"overlap_cycles {right['overlap_cycles']:.0f} -> {broken['overlap_cycles']:.0f}")
    return Finding(CAUGHT if grown else MISSED, ", ".join(grown), seconds, ", ".join(grown))


CPU_DETECTORS = {
    "plain command": plain_command,
    "result": on_cpu(*DEFAULT_SCHEDULE),
    "schedules": on_cpu(*ALL_SCHEDULES),
    "races": on_cpu(*ALL_SCHEDULES, "--check-races"),
    "asan": on_cpu(flavour="_asan"),
    "counters": counters,
}

# --- The GPU ------------------------------------------------------------------------------------------------------------

# A right program takes 1 s, with a tool 2 s, most of it to begin; with a tool, others beside it and slow starts, 6 s.
# Of one that hangs by itself a tool says soon what it has to say.
GPU_LIMIT_S, LATE_LIMIT_S, TOOL_LIMIT_S, HUNG_TOOL_LIMIT_S, TIMING_LIMIT_S = 10, 30, 30, 10, 15
# Many tiles for each block, and many more K steps than slots.
LARGER_SHAPE = "4096x4608x1152"
TIMED_SIZE = "4096"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
# Of the kernels only the lesson's is of interest; but initcheck must see who else writes what the host then reads.
ONLY_THE_LESSONS = ("--kernel-name", "kernel_substring=lesson")
TOOL_OPTIONS = {"memcheck": (*ONLY_THE_LESSONS, "--track-stream-ordered-races", "all"), "racecheck": ONLY_THE_LESSONS,
                "synccheck": ONLY_THE_LESSONS, "initcheck": ()}
TOOL_TRIES = 2
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
# What a tool says when it could not do its work. It may still end with a summary, which counts these lines too.
TOOL_FAILED = re.compile(r"Internal Sanitizer Error.*|.*out of memory.*", re.IGNORECASE)
# Its lines that report nothing: a program that finds its result wrong ends with an error, too.
TOOL_REMARK = re.compile(r"COMPUTE-SANITIZER|SUMMARY|process didn't terminate successfully|Target application returned")
REMARK = re.compile(r"^.*\((C75\d\d)\).*$|^.*[Ww]arning.*$", re.MULTILINE)
SPILLED = re.compile(r"(\d+) bytes spill stores")


def with_larger_shape(arguments):
    """The arguments, with one more problem."""
    arguments = list(arguments)
    place = arguments.index("--shape") + 1
    arguments[place] += "," + LARGER_SHAPE
    return arguments


def timed(mistake, rounds, sample_ms):
    """The options for so many samples of so many milliseconds, without cuBLAS, whose kernels racecheck fails on. A sample
    of lesson 07 is one run of all batches."""
    options = ["--rounds", str(rounds)]
    return options if mistake.number == "07" else [*options, "--sample-ms", str(sample_ms), "--no-library"]


def briefly(mistake):
    return timed(mistake, 1, 1)


def unverified(mistake):
    """The option to check no results; lesson 07 checks always, and outside of what it times."""
    return [] if mistake.number in ("07", "attention") else ["--no-verify"]


def compiler(programs, mistake):
    """Caught if ptxas remarks something (C75xx), or spills registers."""
    path = programs.path(mistake)
    log = pathlib.Path(f"{path}.log")
    if not log.exists():
        raise BadInput(f"{log}: not there; build the target lab")
    text = log.read_text(encoding="utf-8", errors="replace")
    said = list(dict.fromkeys(match[0].strip() for match in REMARK.finditer(text)))
    spilled = max((int(count) for count in SPILLED.findall(text)), default=0)
    if spilled:
        said.append(f"{spilled} bytes spill stores")
    return Finding(CAUGHT if said else MISSED, "; ".join(said)[:400], 0, text)


def gpu_result(programs, mistake):
    """Two problems, three times each; caught if a result was wrong, or a launch failed. A host that waits for a kernel
    that hangs keeps a processor busy. A program that did not may only have begun late, on a busy machine: it gets more
    time."""
    arguments = with_larger_shape(mistake.run)
    place = arguments.index("--shape") + 1
    arguments[place] = ",".join([arguments[place]] * 3)
    command = [str(programs.path(mistake)), *arguments, *briefly(mistake)]
    finding = judged(run(command, GPU_LIMIT_S))
    if finding.outcome == HANG and finding.seconds < GPU_LIMIT_S / 2:
        finding = judged(run(command, LATE_LIMIT_S))
    wrong = finding.output.count("error: wrong result")
    if wrong:
        finding.message = f"{wrong} of 6 results: {finding.message}"[:400]
    return finding


def judged_tool(ran):
    """Of a tool of compute-sanitizer: broken if it failed itself, else caught if it reported something, and counted it,
    or the program hangs."""
    said = [line.lstrip("= ") for line in ran.output.splitlines() if line.startswith("=========")]
    reports = [line for line in said if line and not TOOL_REMARK.search(line)]
    failed, summary = TOOL_FAILED.search(ran.output), SUMMARY.search(ran.output)
    if ran.timed_out:
        reports = [] if failed else reports
        return Finding(CAUGHT if reports else HANG,
                       f"before it hangs: {' '.join(reports)}"[:400] if reports else "", ran.seconds, ran.output)
    if failed or not summary or ran.status < 0:
        words = failed[0].lstrip("= ") if failed else " ".join(ran.output.split())[-300:] or "no output"
        why = "" if failed else f"ended by signal {-ran.status}: " if ran.status < 0 else "no summary: "
        return Finding(BROKEN, f"the tool failed: {why}{words}"[:400], ran.seconds, ran.output)
    caught = int(summary[1]) > 0 and bool(reports)
    return Finding(CAUGHT if caught else MISSED,
                   f"{summary[1]} errors: {' '.join(reports)}"[:400] if caught else "", ran.seconds, ran.output)


def sanitizer(tool):
    """The detector that runs the program under a tool of compute-sanitizer, once more if the tool fails."""
    def detect(programs, mistake):
        for _ in range(TOOL_TRIES):
            command = [programs.sanitizer, "--tool", tool, "--print-limit", "5", *TOOL_OPTIONS[tool],
                       str(programs.path(mistake)), *mistake.run, *briefly(mistake)]
            finding = judged_tool(run(command, programs.tool_limit_s or TOOL_LIMIT_S))
            if finding.outcome != BROKEN:
                break
        return finding
    return detect


def bounded_waits(programs, mistake):
    """Caught if a wait gave up, in a build whose waits do."""
    debug = dataclasses.replace(programs, folder=programs.debug_folder)
    ran = run([str(debug.path(mistake)), *with_larger_shape(mistake.run), *briefly(mistake)], TOOL_LIMIT_S)
    if ran.timed_out:
        return Finding(HANG, "", ran.seconds, ran.output)
    waited = [line.strip() for line in ran.output.splitlines() if re.search(r"waited .* for", line)]
    return Finding(CAUGHT if waited else MISSED, "; ".join(waited)[:400], ran.seconds, ran.output)


def timing(programs, mistake):
    """Caught if slower than the right kernel, timed in turns."""
    times, seconds = {}, 0.0
    right = programs.path(dataclasses.replace(mistake, name=""))
    for program in (right, programs.path(mistake)) * 2:
        runs, ran = results_of([str(program), "--size", TIMED_SIZE, *without_shape(mistake.run), *unverified(mistake),
                                *timed(mistake, 3, 20)], TIMING_LIMIT_S)
        if not runs:
            return judged(ran)
        times.setdefault(program, []).append(runs[0]["time_us_median"])
        seconds += ran.seconds
    before, after = statistics.median(times[right]), statistics.median(times[programs.path(mistake)])
    message = f"{before:.0f} us -> {after:.0f} us, {after / before:.2f} x"
    return Finding(CAUGHT if after > SLOWER_BY * before else MISSED, message, seconds, message)


GPU_DETECTORS = {
    "result": gpu_result,
    **{tool: sanitizer(tool) for tool in TOOLS},
    "bounded": bounded_waits,
    "compiler": compiler,
    "timing": timing,
}
# How long each may take at most, in seconds.
GPU_MOST_S = {"result": GPU_LIMIT_S + LATE_LIMIT_S, **{tool: TOOL_TRIES * TOOL_LIMIT_S for tool in TOOLS},
              "bounded": TOOL_LIMIT_S, "compiler": 0, "timing": 4 * TIMING_LIMIT_S}


def detectors_for(kind, device):
    """The names of those that are worth a try: a performance mistake gives the right result, and only it costs time."""
    if device == "cpu":
        # What lies outside an array, or was never written, is whatever it is: not for the race checker.
        last = {"handshake": ["races"], "memory": ["asan"], "performance": ["races", "counters"]}
        return ["plain command", "result", "schedules"] + last[kind]
    return [name for name in GPU_DETECTORS if (name == "timing") <= (kind == "performance")]


def findings_for(mistake, programs, device, names, known, end=None):
    """A finding by each detector named, one after the other: the clock counts what others do. `known` are findings of
    before. On the GPU none begins that may take until after `end`, of time.monotonic()."""
    detectors = CPU_DETECTORS if device == "cpu" else GPU_DETECTORS
    findings = {}
    for name in names:
        # A compiler without the runtime library of AddressSanitizer builds no such programs.
        if name == "asan" and not programs.path(mistake, "_asan").exists():
            continue
        if end is not None and time.monotonic() + GPU_MOST_S[name] > end:
            break
        result = findings.get("result") or known.get("result")
        if result and result.outcome == HANG:
            programs = dataclasses.replace(programs, tool_limit_s=HUNG_TOOL_LIMIT_S)
        findings[name] = detectors[name](programs, mistake)
    return findings
