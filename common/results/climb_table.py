"""The tables of the climb: of the newest result file, and of the newest experiment `levels`.

    <!-- steps: -->
    <!-- end -->
"""
import json

from lattice import NOISE, steps
from record_files import newest
from stale import dated

LIBRARIES = {"cublas_gemmex": "cublasGemmEx", "cublaslt": "cublasLt, best of 8"}


class BadInput(Exception):
    """What is wrong with an argument or a file, in one line."""


def read_results(path):
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        for key in ("date", "commit", "gpu", "driver", "toolkit", "runs"):
            if key not in results:
                raise BadInput(f"{path}: is no result file: '{key}' is missing")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: is no result file: {error}") from error
    # Levels of the host's half, which `ladder` runs too, are no products of one launch.
    timed = [run for run in results["runs"] if run.get("tflops") is not None and "level" not in run["settings"]]
    if not timed:
        raise BadInput(f"{path}: holds no times; record it on a GPU")
    for run in timed:
        # Before l1 was a setting, lesson 03 with one slot was the step 03.1. It copied past L1, as 03.2 does today.
        if run.get("rung") == "03.1" and run["settings"].get("slots") == "1" and "l1" not in run["settings"]:
            run["rung"] = "03.2"
    results["runs"] = timed
    return results


def contender(run):
    """What makes a row: the same lesson or library with the same core and settings."""
    return run["lesson"], run["core"], tuple(sorted(run["settings"].items()))


def shape(run):
    """All 0 where what was timed is no product."""
    return run.get("m", 0), run.get("n", 0), run.get("k", 0)


def shape_title(sizes):
    return f"{sizes[0]}³" if len(set(sizes)) == 1 else "×".join(map(str, sizes))


def is_library(run):
    return run["lesson"] in LIBRARIES


def fastest_library(runs, sizes):
    """The run of the fastest variant of the libraries, as in the programs' own tables; None if none took part."""
    return max((run for run in runs if is_library(run) and shape(run) == sizes), key=lambda run: run["tflops"], default=None)


def library_title(run):
    return f"{LIBRARIES[run['lesson']]}, B {run['settings'].get('b', '')}"


def libraries_compared_with(runs):
    """A sentence that names the fastest library at each size; empty if none took part."""
    sizes_of = {}
    for sizes in sorted({shape(run) for run in runs}, key=by_volume):
        if library := fastest_library(runs, sizes):
            sizes_of.setdefault(library_title(library), []).append(shape_title(sizes))
    if not sizes_of:
        return ""
    named = (f"{title} at {', '.join(sizes)}" for title, sizes in sizes_of.items())
    return f"Percent of the library: of its fastest variant in the same interleaved run ({'; '.join(named)})."


def by_volume(sizes):
    return sizes[0] * sizes[1] * sizes[2], sizes


def folder_of(lesson):
    """From the root: where a program's page is."""
    return {"06_any_shape": "06_clusters_dsmem/any_shape", "05_cube": "05_ws_double_buffer",
            "05_attention": "05_ws_double_buffer/attention"}.get(lesson, lesson)


def row_title(run, runs):
    """The lesson, and what tells this row from the lesson's others: its core, and settings that vary among them."""
    siblings = [other for other in runs if other["lesson"] == run["lesson"]]
    if is_library(run):
        return library_title(run)
    title = f"[{run['lesson']}](../{folder_of(run['lesson'])}/)"
    if len({contender(other) for other in siblings}) == 1:
        return title
    details = [f"`{run['core']}`"]
    for name, value in sorted(run["settings"].items()):
        if name != "core" and len({other["settings"].get(name) for other in siblings}) > 1:
            details.append(f"{name} {value}")
    return f"{title}, {', '.join(details)}"


def speed(run):
    return f"{run['tflops']:.{0 if run['tflops'] >= 100 else 1}f}" if run else ""


LARGE_CUBES = [(size,) * 3 for size in (4096, 5000, 8192)]


class Climb:
    """The runs of a file as the steps of the climb, each with the one that it builds on, and the libraries."""

    def __init__(self, runs):
        self.steps = {step.id: step for step in steps()}
        recorded = {run["rung"] for run in runs if run.get("rung")}
        self.rungs = [number for number in self.steps if number in recorded]
        self.libraries = list(dict.fromkeys(contender(run) for run in runs if is_library(run)))
        self.runs = [run for run in runs if is_library(run) or run.get("rung") in self.steps]
        # Cubes first, then the others.
        self.shapes = sorted({shape(run) for run in self.runs}, key=lambda sizes: (len(set(sizes)) > 1, by_volume(sizes)))
        self.by_place = {(contender(run) if is_library(run) else run["rung"], shape(run)): run for run in self.runs}

    def base(self, number):
        """The id of the step that this one builds on, or of the nearest below it that was recorded; empty if none was."""
        base = self.steps[number].base
        while base and base not in self.rungs:
            base = self.steps[base].base
        return base

    def title(self, key):
        """A step with its label and a link to its kernel, or a library."""
        if key in self.libraries:
            return library_title(next(run for run in self.runs if contender(run) == key))
        step = self.steps[key]
        return f"[{step.id}](../{step.kernel.as_posix()}) {step.label}"

    def gain(self, number, sizes):
        """Over the step that it builds on; None if either was not recorded."""
        run, before = self.by_place.get((number, sizes)), self.by_place.get((self.base(number), sizes))
        return run["tflops"] / before["tflops"] if run and before else None

    def cell(self, key, sizes):
        """The speed and the percentage of the library; below them the gain over what the step builds on."""
        run, library = self.by_place.get((key, sizes)), fastest_library(self.runs, sizes)
        if not run:
            return ""
        share = f" ({run['tflops'] / library['tflops'] * 100:.0f} %)" if library else ""
        gain = None if is_library(run) else self.gain(key, sizes)
        return speed(run) + share + (f"<br>{gain:.2f}×" if gain else "")

    def table(self):
        lines = ["| step | over | its one cause | " + " | ".join(map(shape_title, self.shapes)) + " |",
                 "|---|---|---" + "|--:" * len(self.shapes) + "|"]
        for key in self.rungs + self.libraries:
            words = ["", ""] if key in self.libraries else [self.base(key), self.steps[key].cause]
            lines.append("| " + " | ".join([self.title(key), *words] + [self.cell(key, sizes) for sizes in self.shapes]) + " |")
        return lines

    def way(self):
        """The ids from the first step to the last but the kernels for any shape."""
        number, way = next((number for number in reversed(self.rungs) if number != "any"), ""), []
        while number:
            way.insert(0, number)
            number = self.base(number)
        return way

    def product(self):
        """A sentence: the gains on the way up at the cube in the middle, which multiply to the whole."""
        way, cubes = self.way(), [sizes for sizes in self.shapes if len(set(sizes)) == 1]
        if len(way) < 3 or not cubes:
            return []
        sizes = cubes[len(cubes) // 2]
        gains = [self.gain(number, sizes) for number in way[1:]]
        if not all(gains):
            return []
        whole = self.by_place[way[-1], sizes]["tflops"] / self.by_place[way[0], sizes]["tflops"]
        return ["", f"From {way[0]} to {way[-1]} at {shape_title(sizes)}: " + " × ".join(f"{gain:.2f}" for gain in gains) + f" = {whole:.{0 if whole >= 10 else 2}f}."]

    def descents(self):
        """[(step, base, shape)] where the climb goes down: a step is more than 1 % slower than the one that it builds on, and in the
        better half of its samples slower than that in the worse half. Of the large cubes all steps count, of other sizes those from
        lesson 04 on: before, a larger tile may leave multiprocessors empty."""
        found = []
        for number in self.rungs:
            for sizes in self.shapes:
                run, before = self.by_place.get((number, sizes)), self.by_place.get((self.base(number), sizes))
                counts = number != "any" and (number >= "04" or sizes in LARGE_CUBES)
                if (run and before and counts and run["time_us_median"] > 1.01 * before["time_us_median"]
                        and run["time_us_q1"] > before["time_us_q3"]):
                    found.append((number, self.base(number), sizes))
        return found

    def losses(self):
        """A sentence for each step that is slower than the one that it builds on."""
        lines = []
        for number in self.rungs:
            places = [shape_title(sizes) for sizes in self.shapes if (self.gain(number, sizes) or 1) < 1 - NOISE]
            if places:
                lines += ["", f"{number} is slower than {self.base(number)} at {', '.join(places)}."]
        return lines


def climb_table(folder):
    """The lines that stand for the request; `folder` is that of all results."""
    path = max(folder.glob("*.json"), default=None)
    if path is None:
        return ["Not recorded yet."]
    results = read_results(path)
    climb = Climb(results["runs"])
    clocks = [run["clock_mhz"] for run in climb.runs if run.get("clock_mhz")]
    clock = f", SM clock {min(clocks):.0f} to {max(clocks):.0f} MHz" if clocks else ""
    verified = all(run.get("verified") for run in climb.runs)
    lines = climb.table() + [
        "",
        "TFLOP/s (percent of the library); below, the gain over the step that it builds on. "
        f"{libraries_compared_with(climb.runs)} "
        f"{results['gpu']}, driver {results['driver']}, {results['toolkit']}{clock}; {dated(results)}, commit "
        f"`{results['commit']}`. {'All results verified.' if verified else 'Not all results are verified.'}",
    ]
    return lines + climb.product() + climb.losses() + host_half(read_levels(folder))


def read_levels(folder):
    """The newest file of the experiment `levels` in a folder of results; None if there is none."""
    path = newest(folder, "experiments/levels")
    return json.loads(path.read_text(encoding="utf-8")) if path else None


def host_half(results):
    """The rest of the climb, around the kernels: a row for each level of lesson 07."""
    if results is None:
        return []
    runs = results["runs"]
    shapes, levels = (list(dict.fromkeys(map(key, runs))) for key in (shape, lambda run: run["settings"]["level"]))
    by_place = {(run["settings"]["level"], shape(run)): run for run in runs}
    batches = ", ".join(sorted({f"{run['settings']['batches']} batches of some {run['m']} rows" for run in runs}))
    header = ["from host memory to host memory", "kernel"] + [f"weights {sizes[2]}×{sizes[1]}" for sizes in shapes]
    lines = ["", "| " + " | ".join(header) + " |", "|---|---" + "|--:" * len(shapes) + "|"]
    for i, level in enumerate(levels):
        settings = by_place[level, shapes[0]]["settings"]
        streams = "1 stream" if settings["streams"] == "1" else f"{settings['streams']} streams"
        cells = [f"[07](../07_streams/), level {level}: {streams}", settings["kernel"]]
        for sizes in shapes:
            run, before = by_place[level, sizes], by_place[levels[i - 1], sizes] if i else None
            gain = f"<br>{run['tflops'] / before['tflops']:.2f}×" if before else ""
            cells.append(f"{speed(run)} ({run['bound_us'] / run['time_us_median'] * 100:.0f} %){gain}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines + ["", "TFLOP/s (percent of the bound: the longest of the kernels alone, and of uploads and downloads beside each other); below, the gain "
                    f"over the level before. {batches}; {results['gpu']}, {dated(results)}, commit `{results['commit']}`."]


def read_page(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
