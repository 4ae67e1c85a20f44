#!/usr/bin/env python3
"""Puts together what profile.sh left in a folder, as one result file.

    profiles.py FOLDER OUTPUT

In the folder: header.json, a result file that says date, commit, GPU, driver and toolkit; metrics.txt, the metrics that
were asked for, one a line; profiler.txt, the profiler's version; and for each launch NN.txt, the command line of the
program, and NN.csv, what Nsight Compute wrote (--csv --page raw --print-units base). A metric without a value in any
launch is listed as absent. Exit code 2: bad input, one line.

A page asks for a table of the newest record:

    <!-- profile: rows=group only=lesson:05_ws_double_buffer -->
    <!-- end -->

rows=KEY names the rows after a setting, or after the lesson (rows=lesson, the default); only= as for tables. Each column
is made from the first of its metrics that the profiler had. columns=roofline gives flops for each byte instead,
columns=residency what a block takes and how many fit, columns=waits the four most frequent reasons to wait,
columns=copies what copies to shared memory of several widths ask of L1 and L2, columns=l2 what L2 and memory move. Launches
of an experiment are left out of every table whose only= does not name its setting.
without=TITLE,... leaves out columns, as for tables.

    <!-- order_profile: rows=group columns=l2 only=lesson:05_ws_double_buffer -->
    <!-- end -->

The same of the record profile_order.
"""
import csv
import json
import sys
from pathlib import Path

from climb_table import BadInput, folder_of
from page_requests import markdown, meets, parse_words, titles_of, value, without_columns
from record_files import newest
from script import end_with, json_rows, write_whole
from stale import dated


def number(text):
    """A figure of the CSV, which may group its digits; None where the profiler had none ("n/a")."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def read_counters(path, wanted):
    """The kernel's name and its metrics, from a CSV with lines of the profiler's own before the header."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    rows = list(csv.DictReader(lines[begin:])) if begin is not None else []
    rows = [row for row in rows if row["ID"]]  # the row below the header holds the units
    if not rows:
        words = " ".join(line for line in lines if "ERROR" in line or "WARNING" in line)
        raise BadInput(f"{path}: no kernel was profiled: {words or 'see the file'}")
    figures = {name: number(rows[0].get(name) or "") for name in wanted}
    return rows[0]["Kernel Name"], {name: figure for name, figure in figures.items() if figure is not None}


def read_launch(text):
    """The lesson, the problem and the settings of a command line like "05_x --size 4096 --group 8"."""
    lesson, *words = text.split()
    options = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2]))
    size = int(options.pop("size"))
    return {"lesson": lesson, "core": options.get("core", "auto"), "m": size, "n": size, "k": size, "settings": options}


def collect(folder):
    try:
        header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
        wanted = (folder / "metrics.txt").read_text(encoding="utf-8").split()
        results = {key: header[key] for key in ("date", "commit", "gpu", "driver", "toolkit")}
        results["profiler"] = (folder / "profiler.txt").read_text(encoding="utf-8").strip()
        launches = []
        for path in sorted(folder.glob("[0-9]*.csv")):
            kernel, metrics = read_counters(path, wanted)
            launch = read_launch(path.with_suffix(".txt").read_text(encoding="utf-8"))
            launches.append({**launch, "kernel": kernel, "metrics": metrics})
    except OSError as error:
        raise BadInput(f"{error.filename}: {error.strerror}") from error
    except (ValueError, KeyError) as error:
        raise BadInput(f"{folder}: {error!r}") from error
    if not launches:
        raise BadInput(f"{folder}: no launch was profiled")
    seen = {name for launch in launches for name in launch["metrics"]}
    results["absent"] = [name for name in wanted if name not in seen]
    results["launches"] = launches
    return results


NONE_YET = "No profile has been recorded yet: `common/results/record.py BUILD profiles` does it."

TENSOR_METRICS = ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                  "sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active",
                  "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
                  "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active")
L2_TO_SM_METRICS = ("l1tex__m_xbar2l1tex_read_bytes.sum", "lts__t_bytes.sum")
# Title, metrics in order of preference, what they are multiplied by, digits.
COLUMNS = (
    ("tensor cores, %", TENSOR_METRICS, 1, 0),
    ("issue slots, %", ("sm__inst_issued.avg.pct_of_peak_sustained_active",), 1, 0),
    ("L2, %", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",), 1, 0),
    ("L2 hits, %", ("lts__t_sector_hit_rate.pct",), 1, 0),
    ("L2 to SMs, MB", L2_TO_SM_METRICS, 1e-6, 0),
    ("read, MB", ("dram__bytes_read.sum",), 1e-6, 0),
    ("written, MB", ("dram__bytes_write.sum",), 1e-6, 0),
    ("warps, %", ("sm__warps_active.avg.pct_of_peak_sustained_active",), 1, 0),
    ("registers", ("launch__registers_per_thread",), 1, 0),
    ("shared, KB", ("launch__shared_mem_per_block_dynamic", "launch__shared_mem_per_block"), 1 / 1024, 0),
)
ADDED_LATER = ("issue slots, %", "L2, %")  # not in older profiles
# Where Nsight Compute shows by hand what the columns show: `ncu --section NAME`.
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables",
            "WarpStateStats", "LaunchStats", "Occupancy")
LIMIT = "launch__occupancy_limit_"
LIMITS = {"registers": "registers", "shared_mem": "shared memory", "warps": "warps", "blocks": "blocks"}
STALL, STALL_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
SHOWN_STALLS = 2
VIEWS = ("all", "roofline", "residency", "waits", "copies", "l2")
# Settings that make a launch part of an experiment.
OF_EXPERIMENTS = ("bytes",)
COPIES = "sm__sass_inst_executed_op_ldgsts_cache_{}.sum"
COPY_SECTORS = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_{}.sum"
LANES = 32


def read_profile(path):
    try:
        profile = json.loads(path.read_text(encoding="utf-8"))
        for key in ("date", "commit", "gpu", "profiler", "launches"):
            if key not in profile:
                raise BadInput(f"{path}: is no profile: '{key}' is missing")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: is no profile: {error}") from error
    return profile


def cell(metrics, names, factor, digits):
    found = [metrics[name] for name in names if name in metrics]
    return f"{found[0] * factor:.{digits}f}" if found else ""


def limiter(metrics):
    """What allows the fewest blocks on a multiprocessor, and how many: "shared memory (1)"."""
    limits = {words: metrics[LIMIT + name] for name, words in LIMITS.items() if LIMIT + name in metrics}
    if not limits:
        return ""
    fewest = min(limits.values())
    return f"{', '.join(words for words, blocks in limits.items() if blocks == fewest)} ({fewest:.0f})"


def stalls(metrics, shown=SHOWN_STALLS):
    """What warps wait for most often, each with its share of the warps that did not issue."""
    reasons = {name.removeprefix(STALL).removesuffix(STALL_END).replace("_", " "): figure
               for name, figure in metrics.items() if name.startswith(STALL) and name.endswith(STALL_END)}
    reasons.pop("selected", None)
    total = sum(reasons.values())
    top = sorted(reasons, key=reasons.get, reverse=True)[:shown] if total else []
    return ", ".join(f"{reason} {100 * reasons[reason] / total:.0f} %" for reason in top)


def title(launch, key):
    if key != "lesson":
        return f"`{value(launch, key)}`"
    settings = ", ".join(f"{name} {chosen}" for name, chosen in sorted(launch["settings"].items()))
    return f"[{launch['lesson']}](../{folder_of(launch['lesson'])}/)" + (f", {settings}" if settings else "")


def per_byte(launch, names):
    """Flops of the product for each byte that the metrics count together; "" where one is missing."""
    metrics = launch["metrics"]
    if not all(name in metrics for name in names):
        return ""
    return f"{2 * launch['m'] * launch['n'] * launch['k'] / sum(metrics[name] for name in names):.1f}"


def copies(metrics, width):
    """Copies of so many bytes a thread: how many, how many of them go past L1, and what that means for L2."""
    past, looked = metrics.get(COPIES.format("bypass")), metrics.get(COPIES.format("access"))
    arrived = metrics.get("l1tex__m_xbar2l1tex_read_bytes.sum")
    share = f"{100 * past / (past + looked):.0f}" if past is not None and looked is not None and past + looked else ""
    return {"copies, M": f"{(past + looked) * 1e-6:.2f}" if share else "",
            "predicted": f"{arrived / (LANES * width) * 1e-6:.2f}" if arrived else "",
            "past L1, %": share, "predicted, %": "100" if width == 16 else "0",
            "sectors looked up in L1, M": cell(metrics, (COPY_SECTORS.format("access"),), 1e-6, 1),
            "sectors past L1, M": cell(metrics, (COPY_SECTORS.format("bypass"),), 1e-6, 1),
            "L1 hits, %": cell(metrics, ("l1tex__t_sector_hit_rate.pct",), 1, 1),
            "sectors from L2, M": cell(metrics, ("lts__t_sectors_srcunit_tex_op_read.sum",), 1e-6, 1),
            "L2 to SMs, MB": cell(metrics, L2_TO_SM_METRICS, 1e-6, 0)}


def cells(launch, view):
    """Titles and values of a row, after its name."""
    metrics = launch["metrics"]
    named = {name: cell(metrics, *column) for name, *column in COLUMNS}
    if view == "roofline":
        l2 = next((name for name in L2_TO_SM_METRICS if name in metrics), "")
        return {"flops per byte of memory": per_byte(launch, ("dram__bytes_read.sum", "dram__bytes_write.sum")),
                "flops per byte from L2 to SMs": per_byte(launch, (l2,)), "tensor cores, %": named["tensor cores, %"]}
    if view == "waits":
        return {"tensor cores, %": named["tensor cores, %"], "warps wait for": stalls(metrics, 4)}
    if view == "copies":
        return copies(metrics, int(launch["settings"]["bytes"]))
    if view == "l2":
        return {"µs": cell(metrics, ("gpu__time_duration.sum",), 1e-3, 0)} | {
            "L2 moves, MB": cell(metrics, ("lts__t_bytes.sum",), 1e-6, 0)} | {
            name: named[name] for name in ("L2 hits, %", "L2 to SMs, MB", "read, MB", "written, MB")}
    if view == "residency":
        blocks = {f"blocks by {words}": cell(metrics, (LIMIT + name,), 1, 0) for name, words in LIMITS.items()
                  if name != "blocks"}
        return {name: named[name] for name in ("registers", "shared, KB")} | blocks | {"warps, %": named["warps, %"]}
    return named | {"blocks an SM limited by": limiter(metrics), "warps wait for": stalls(metrics)}


def origin(profile, launches):
    sizes = ", ".join(sorted({f"{run['m']}×{run['n']}×{run['k']}" for run in launches}))
    used = [next((name for name in names if any(name in run["metrics"] for run in launches)), None)
            for names in (TENSOR_METRICS, L2_TO_SM_METRICS)]
    metrics = " and ".join(f"`{name}`" for name in used if name)
    return (f"{profile['gpu']}, {dated(profile)}, commit `{profile['commit']}`, {sizes}, one launch each under Nsight "
            f"Compute {profile['profiler']}, caches flushed before it" + (f"; {metrics}." if metrics else "."))


def profile_table(line, words, results_folder, record):
    """The lines that stand for the request."""
    values, only = parse_words(line, words, ("rows", "columns", "without"))
    key, view = values.get("rows", "lesson"), values.get("columns", "all")
    if view not in VIEWS:
        raise BadInput(f"{line}: columns= is one of {', '.join(VIEWS)}")
    if view == "copies" and "bytes" not in only:
        raise BadInput(f"{line}: columns=copies needs only=bytes:WIDTH,...")
    path = newest(results_folder, f"profiles/{record}")
    if path is None:
        return [NONE_YET]
    profile = read_profile(path)
    launches = [launch for launch in profile["launches"] if meets(launch, only) and
                all(key in only for key in OF_EXPERIMENTS if key in launch["settings"])]
    if not launches and any(key in only for key in OF_EXPERIMENTS):
        return [NONE_YET]
    if not launches:
        raise BadInput(f"{line}: no launch in {path.name} is like that")
    table = [{key: title(run, key)} | cells(run, view) for run in launches]
    header = [name for name in table[0] if name not in ADDED_LATER or any(row[name] for row in table)]
    rows = [[row[name] for name in header] for row in table]
    return without_columns(line, markdown(header, rows), titles_of(values)) + ["", origin(profile, launches)]


def main():
    if len(sys.argv) != 3:
        raise BadInput("needs FOLDER and OUTPUT")
    results = collect(Path(sys.argv[1]))
    output = Path(sys.argv[2])
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json_rows(results))
    print(f"{output}: {len(results['launches'])} launches; absent: {', '.join(results['absent']) or 'nothing'}")


if __name__ == "__main__":
    end_with(main, BadInput)
