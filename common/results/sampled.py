#!/usr/bin/env python3
"""Records how busy tensor cores and L2 are over the time of one launch, by Nsight Compute's PM sampling.

    sampled.py BUILD_FOLDER OUTPUT SIZE      (record.py calls it: record.py BUILD sampled)

Each sample is of all multiprocessors, or of all of L2, over an interval of one or two microseconds; both are of the same launch, or
this fails. Needs a GPU, a build for it, and a profiler that may read the GPU's counters. Exit code 2: bad input, one line.
"""
import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from climb_table import BadInput
from profile_results import read_launch
from script import end_with, json_rows, write_whole

LAUNCHES = ("02_tiled --core wgmma", "03_double_buffer --slots 1", "03_double_buffer --slots 3", "04_warp_specialized --step storer", "05_ws_double_buffer --group 16")
SERIES = {"tensor": re.compile(r"sm__pipe_tensor_cycles_active_realtime\.avg\.pct"), "l2": re.compile(r"\blts__throughput\.avg\.pct")}
INTERVAL_NS = 1000
LIMIT_S = 60
SAMPLE = re.compile(r"(\d{15,}) \(\+\d+\): ([-\d.eE+]+)")  # "timestamp (+n): value", of each sample


def columns_of(raw):
    """What the profiler wrote on its page `raw`: {column: text} of the kernel. @throws BadInput"""
    lines = raw.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    csv.field_size_limit(sys.maxsize)
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines[begin:])))] if begin is not None else []
    rows = [row for row in rows if row["ID"]]  # the row below the header holds the units
    if not rows:
        raise BadInput("no kernel was profiled: " + " ".join(line for line in lines if "ERROR" in line or "WARNING" in line))
    return rows[0]


def series_of(columns, pattern):
    """[(microseconds since the kernel began, percent)] of the metric of this name. @throws BadInput"""
    begin, end = (int(re.search(r"\d{15,}", columns[f"profiler__timestamp_workload_{edge}_0"])[0]) for edge in ("start", "end"))
    for name, text in columns.items():
        if pattern.search(name):
            inside = [((int(at) - begin) / 1e3, float(value)) for at, value in SAMPLE.findall(text) if begin <= int(at) <= end]
            if inside:
                return inside
    raise BadInput(f"the profiler sampled no metric like {pattern.pattern}: {', '.join(name for name in columns if 'pct' in name)}")


def sampled(ncu, programs, launch, size):
    words = launch.split()
    command = [ncu, "--clock-control", "none", "--launch-count", "1", "--kill", "yes", "--kernel-name-base", "demangled",
               "--kernel-name", r"regex:.*lesson[0-9]+::(\w+::)?gemm.*", "--section", "PmSampling", "--pm-sampling-interval",
               str(INTERVAL_NS), "--print-metric-instances", "details", "--csv", "--page", "raw",
               str(programs / words[0]), *words[1:], "--size", str(size), "--no-verify", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    columns = columns_of(done.stdout + done.stderr)
    series = {name: series_of(columns, pattern) for name, pattern in SERIES.items()}
    times, *others = ([at for at, _ in points] for points in series.values())
    if any(other != times for other in others):
        raise BadInput(f"{launch}: the profiler sampled {' and '.join(series)} in different launches")
    return {**read_launch(f"{launch} --size {size}"), "us": [round(at, 2) for at in times],
            **{name: [round(value, 1) for _, value in points] for name, points in series.items()}}


def main():
    if len(sys.argv) != 4 or not sys.argv[3].isdecimal():
        raise BadInput("needs BUILD_FOLDER, OUTPUT and SIZE")
    programs, output, size = Path(sys.argv[1]) / "bin", Path(sys.argv[2]), int(sys.argv[3])
    ncu = shutil.which("ncu") or max(map(str, Path("/usr/local").glob("cuda*/bin/ncu")), default=None)
    if ncu is None:
        raise BadInput("there is no Nsight Compute (ncu)")
    with tempfile.NamedTemporaryFile(suffix=".json") as header:
        subprocess.run([programs / "01_naive", "--size", "256", "--rounds", "1", "--json", header.name], check=True, capture_output=True)
        facts = json.loads(Path(header.name).read_text(encoding="utf-8"))
    version = re.search(r"Version ([\d.]+)", subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout)
    results = {key: facts[key] for key in ("date", "commit", "gpu", "driver", "toolkit")}
    results["profiler"] = version[1] if version else ""
    results["launches"] = [sampled(ncu, programs, launch, size) for launch in LAUNCHES]
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, json_rows(results))


if __name__ == "__main__":
    end_with(main, BadInput)
