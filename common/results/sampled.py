#!/usr/bin/env python3
"""Records how busy tensor cores and L2 are over the time of one launch, by Nsight Compute's PM sampling.

    sampled.py BUILD_FOLDER OUTPUT SIZE      (record.py calls it: record.py BUILD sampled)

Each sample is of all multiprocessors, or of all of L2, over an interval of one or two microseconds; both are of the same launch, or
this fails. Needs a GPU, a build for it, and a profiler that may read the GPU's counters. Exit code 2: bad input, one line.

A page asks for curves of the newest record:

    <!-- sampled: picture=over_time.svg -->
    <!-- end -->

A panel for each launch, at one scale. The picture is written to docs/figures, as SVG that follows the reader's light or dark theme.
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
from statistics import correlation, mean, median, pstdev

from climb_table import BadInput
from idea_pictures import svg, text
from page_requests import markdown, parse_words
from profiles import read_launch
from record_files import newest
from script import end_with, json_rows, write_whole
from stale import dated

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


WIDTH, LEFT, RIGHT = 400, 34, 392  # pixels
PANEL, TITLE, GAP, AXIS = 84, 24, 12, 24
STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .edge { stroke: #d1d9e0; }
    .tensor { fill: none; stroke: #2a8c4a; stroke-width: 1.5; }
    .l2 { fill: none; stroke: #1f77b4; stroke-width: 1.5; stroke-dasharray: 5 3; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .edge { stroke: #3a3c40; }
      .tensor { stroke: #57c27c; }
      .l2 { stroke: #5aa9e6; }
    }"""
NAMES = {"tensor": "tensor cores", "l2": "L2"}
EDGE = 0.1  # of the launch, at its begin and at its end, that the table leaves out
STEADY = 0.2  # of the median, by which samples in the table differ from it at most


def recorded(results_folder):
    path = newest(results_folder, "profiles/sampled")
    return None if path is None else json.loads(path.read_text(encoding="utf-8"))


def length_of(launch):
    return launch["us"][-1]


def picture_of(line, words):
    values, only = parse_words(line, words, ("picture",))
    if only or not re.fullmatch(r"[\w-]+\.svg", values.get("picture", "")):
        raise BadInput(f"{line}: needs picture=, the name of an SVG file, and nothing else")
    return values["picture"]


def steady(launch):
    """The percentages of both, a list each: between the first and the last tenth of the launch, where the tensor cores are about as
    busy as usual. At the edges of waves, where blocks end and others begin together, they are not."""
    whole = length_of(launch)
    both = [(tensor, l2) for at, tensor, l2 in zip(launch["us"], launch["tensor"], launch["l2"]) if EDGE * whole <= at <= (1 - EDGE) * whole]
    usual = median(tensor for tensor, _ in both)
    return zip(*((tensor, l2) for tensor, l2 in both if abs(tensor - usual) <= STEADY * usual))


def title_of(launch):
    settings = ", ".join(f"{name} {chosen}" for name, chosen in sorted(launch["settings"].items()))
    return f"{launch['lesson']}, {settings}"


def sampled_text(line, words, results_folder):
    """The lines below the request."""
    picture, results = picture_of(line, words), recorded(results_folder)
    if results is None:
        return ["Not recorded yet."]
    rows = []
    for launch in results["launches"]:
        both = list(steady(launch))
        rows.append([title_of(launch), *(f"{mean(one):.0f} ± {pstdev(one):.1f}" for one in both), f"{correlation(*both):+.2f}"])
    size = results["launches"][0]
    return [f"![How busy tensor cores and L2 are over the time of a launch](../docs/figures/{picture})", "",
            *markdown(["lesson"] + [f"{words}, %" for words in NAMES.values()] + ["correlation"], rows), "",
            f"{results['gpu']}, {dated(results)}, commit `{results['commit']}`, {size['m']}×{size['n']}×{size['k']}, one launch each under "
            f"Nsight Compute {results['profiler']}: means, deviations and correlation of the samples, without the first and the last tenth and the edges of waves."]


def sampled_pictures(line, words, results_folder, figures_folder):
    """{path: SVG} of the request's picture."""
    picture, results = picture_of(line, words), recorded(results_folder)
    return {} if results is None else {figures_folder / picture: drawn(results["launches"])}


def drawn(launches):
    longest = max(map(length_of, launches))
    scale = (RIGHT - LEFT) / longest
    shapes, top = [text(LEFT, 14, "tensor cores (line), L2 (dashes), % of peak", "start", "small")], TITLE
    for launch in launches:
        shapes.append(text(LEFT, top + 16, title_of(launch), "start"))
        bottom = top + TITLE + PANEL
        for percent in (0, 50, 100):
            y = bottom - PANEL * percent / 100
            shapes += [f'<line class="edge" x1="{LEFT}" y1="{y:g}" x2="{RIGHT}" y2="{y:g}"/>', text(LEFT - 8, y + 4, str(percent), "end", "small")]
        for name in NAMES:
            path = " ".join(f"{LEFT + at * scale:.1f},{bottom - PANEL * min(percent, 100) / 100:.1f}" for at, percent in zip(launch["us"], launch[name]))
            shapes.append(f'<polyline class="{name}" points="{path}"/>')
        top = bottom + GAP
    for at in range(0, int(longest) + 1, 50 if longest > 100 else 25):
        shapes.append(text(LEFT + at * scale, top + 12, f"{at} µs" if at else "0", "middle", "small"))
    return svg(top + AXIS, "How busy tensor cores and L2 are over the time of a launch", shapes, STYLE, WIDTH)


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
