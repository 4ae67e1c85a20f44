"""Tables of experiments that have one of their own: what ingredients are worth, what the parts of kernels take, and attention.

The table of what each ingredient of a lesson is worth, of files that `ladder ablate NN --json` wrote.

    <!-- ablation: 02 05 -->
    <!-- ablation: 05 most=7 -->
    <!-- end -->

For each lesson the newest record `ablate_NN`; with most=N, the N ingredients that are worth the most, in
this order. A table of one lesson with most= names lesson and shape in its heading alone.

What the parts of the kernels take, from the newest experiment `parts`.

    <!-- parts: load rows=boxes columns=blocks,from -->
    <!-- parts: clocked rows=what,from,behind figures=clocks,mhz,ns -->
    <!-- parts: product rows=n,warpgroups,wait,loads figures=clocks,ideal,bytes only=unusual: -->
    <!-- end -->

The first word is the part. rows= and columns= name its settings: a row, or a column, for each combination of their values, in the
order of the record. figures= says what is shown: clocks (the default), spread (half the distance of the quartiles, in percent),
bytes (a clock), ideal (clocks at the hardware's peak), mhz (the clock meanwhile), ns (the clocks at that clock). Without columns=, each figure has a column; else there is one figure.
only=KEY:VALUE,... as for `table`; without a VALUE: the rows that lack this setting.

The newest experiment `attention`: its steps beside the kernels that PyTorch has.

    <!-- attention: lengths -->
    <!-- attention: steps length=16384 causal=no predicted=parts -->
    <!-- end -->

`lengths`: TFLOP/s, a row for each problem and a column for each step and each of PyTorch's backends; the last one is what the last step
reaches of the fastest of them. `steps`: a row for each step at one problem: clocks that a multiprocessor takes for 128 queries and 128
keys, the parts of a causal problem that no query sees left out; what is predicted of them, and by how much that is off. With
predicted=parts that is computed from the newest record of parts, see predictions(); the page may name numbers of its own instead.
"""
import json
from dataclasses import dataclass

from climb_table import BadInput, read_results, shape, shape_title
from page_requests import markdown, meets, off_by, parse_words, without_empty_columns
from record_files import newest
from stale import dated, where


def ablation_table(line, words, folder):
    """A row for each program: its time and its clocks (time x SM clock), and how much more they are than the lesson's as it is,
    which comes first."""
    words, most = [word for word in words if not word.startswith("most=")], [word[5:] for word in words if word.startswith("most=")]
    if not words:
        raise BadInput(f"{line}: needs the numbers of lessons")
    if len(most) > 1 or any(not number.isdecimal() or int(number) == 0 for number in most):
        raise BadInput(f"{line}: most= must be a number from 1 on, and stand there once")
    rows, origins, heading = [], {}, "without"
    for number in words:
        path = newest(folder, f"experiments/ablate_{number}")
        if path is None:
            rows.append([f"{number}: not recorded yet"] + [""] * 5)
            continue
        results = read_results(path)
        runs = results["runs"]
        if most:
            shapes = list(dict.fromkeys(map(shape, runs)))
            if len(shapes) > 1:
                raise BadInput(f"{line}: most= needs a file of one shape, and {path.name} has several")
            runs = runs[:1] + sorted(runs[1:], key=lambda run: -run["time_us_median"])[:int(most[0])]
            if len(words) == 1:
                heading = f"{number}, {shape_title(shapes[0])}, without"
        for run in runs:
            name = run["settings"]["without"]
            more = run["time_us_median"] / runs[0]["time_us_median"] - 1
            clocks = [one["time_us_median"] * one["clock_mhz"] if one.get("clock_mhz") else None for one in (run, runs[0])]
            more_clocks = f"{100 * (clocks[0] / clocks[1] - 1):+.1f} %" if all(clocks) and run is not runs[0] else ""
            rows.append([name if heading != "without" else f"{number}, {shape_title(shape(run))}: {name}", f"{run['time_us_median']:.0f}",
                         f"{run['tflops']:.0f}", "" if run is runs[0] else f"{100 * more:+.1f} %", more_clocks,
                         f"{run['clock_mhz']:.0f}" if run.get("clock_mhz") else ""])
        origins.setdefault(where(results, runs), []).append(number)
    places = [f"{', '.join(numbers)}: {origin}." if len(origins) > 1 else f"{origin}." for origin, numbers in origins.items()]
    return markdown(*without_empty_columns([heading, "µs", "TFLOP/s", "time", "clocks", "SM clock, MHz"], rows)) + ([""] + places if places else [])


RECORDS = {"clocked": "clocks", "paced": "paces", "pieces": "paces", "burst": "paces", "path": "path"}  # where they are, if not in `parts`
FIGURES = {"clocks": ("clocks", lambda run: short(run["clocks"])),
           "spread": ("± %", lambda run: f"{50 * (run['clocks_q3'] - run['clocks_q1']) / run['clocks']:.1f}"),
           "bytes": ("bytes a clock", lambda run: f"{run['bytes'] / run['clocks']:.1f}" if "bytes" in run else ""),
           "mhz": ("MHz", lambda run: f"{run['mhz']:.0f}" if "mhz" in run else ""),
           "ns": ("ns", lambda run: f"{1e3 * run['clocks'] / run['mhz']:.0f}" if "mhz" in run else ""),
           "ideal": ("ideal", lambda run: f"{run['ideal_clocks']:.0f}" if "ideal_clocks" in run else "")}


def short(clocks):
    return f"{clocks:.{0 if clocks >= 100 else 1}f}"


def read_parts(results_folder, record="parts"):
    """The newest record, or None. @throws BadInput if it is none"""
    path = newest(results_folder, f"experiments/{record}")
    if path is None:
        return None
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        for run in results["runs"]:
            run["part"], run["settings"], run["clocks"]  # each row has these
        return results
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no record of parts: {error!r}") from error


def parts_table(line, words, results_folder):
    """The lines below the request."""
    if not words:
        raise BadInput(f"{line}: needs the name of a part")
    values, only = parse_words(line, words[1:], ("rows", "columns", "figures"))
    figures = values.get("figures", "clocks").split(",")
    unknown = [name for name in figures if name not in FIGURES]
    if unknown or "rows" not in values or "columns" in values and len(figures) > 1:
        raise BadInput(f"{line}: needs rows=, and figures= of {', '.join(FIGURES)}; one of them where there is columns=")
    results = read_parts(results_folder, RECORDS.get(words[0], "parts"))
    if results is None:
        return ["Not recorded yet."]
    row_keys = values["rows"].split(",")
    column_keys = values["columns"].split(",") if "columns" in values else []
    cells = {}
    for run in results["runs"]:
        if run["part"] != words[0] or not meets(run, only):
            continue
        row, column = (tuple(run["settings"].get(key, "") for key in keys) for keys in (row_keys, column_keys))
        if (row, column) in cells:
            raise BadInput(f"{line}: several rows of the record are '{', '.join(row + column)}'")
        cells[row, column] = run
    if not cells:
        raise BadInput(f"{line}: no row of the record is like that")
    columns = list(dict.fromkeys(column for _, column in cells))
    header = [", ".join(column) for column in columns] if column_keys else [FIGURES[name][0] for name in figures]
    rows = []
    for row in dict.fromkeys(row for row, _ in cells):
        here = [cells.get((row, column)) for column in columns]
        rows.append([", ".join(filter(None, row))] + [FIGURES[name][1](run) if run else "" for run in here for name in figures])
    title = f"{FIGURES[figures[0]][0]}" if column_keys else ""
    return [*markdown([title, *header], rows), "", f"{results['gpu']}, {dated(results)}, commit `{results['commit']}`."]


BLOCK = 128  # queries, and keys
MULTIPROCESSORS = 132  # of an H100 and an H200


def read_attention(results_folder):
    """The newest record, or None. @throws BadInput if it is none"""
    path = newest(results_folder, "experiments/attention")
    if path is None:
        return None
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        for run in results["runs"]:
            run["attention"], run["length"], run["causal"], run["tflops"], run["clock_mhz"]  # each row has these
        return results
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no record of attention: {error!r}") from error


def clocks_of_block(run):
    """Clocks of a multiprocessor for a block of queries and keys that see each other."""
    side = -(-run["length"] // BLOCK)
    pairs = side * (side + 1) / 2 if run["causal"] else side ** 2
    return run["time_us_median"] * run["clock_mhz"] * MULTIPROCESSORS / (pairs * run["heads"] * run["batch"])


QUERIES = 64  # of a warpgroup
PRODUCT = QUERIES * BLOCK * BLOCK / 2048  # clocks of the tensor cores

# Clocks that a scheduler is busy with an instruction of a warp: 32 lanes by a quarter of what the CUDA C++ Programming Guide ("Throughput
# of Native Arithmetic Instructions") says of a multiprocessor of 9.0. 128 multiply-adds, additions and products, 64 maxima and conversions,
# 16 exponentials, 32 shuffles.
FP32, MAXIMUM, CONVERSION, EXPONENTIAL, SHUFFLE = 1, 2, 2, 8, 4


def softmax_clocks():
    """What the instructions of softmax.cuh and to_weights() take for 64 queries and 128 keys, if each follows the one before: of one
    warpgroup a scheduler has a single warp. A thread has 64 scores and 64 sums of O, in two rows."""
    scores, sums, rows = QUERIES * BLOCK // 128, QUERIES * BLOCK // 128, 2
    of_scores = scores * (MAXIMUM + FP32 + EXPONENTIAL + FP32 + CONVERSION / 2)  # the multiply-add, the exponential and its sum
    of_rows = rows * (2 * (SHUFFLE + MAXIMUM) + EXPONENTIAL + 4 * FP32)  # over the quad; the correction; what it scales
    return of_scores + of_rows + sums * FP32  # the corrections of O


@dataclass
class Parts:
    """Clocks of the record of parts."""
    wait: float  # that a product takes longer because it is waited for
    hand_over: float  # two arrivals and two waits
    ask: float  # to ask for a tile of 128 rows, of two panels


def parts_of(line, results_folder):
    runs = (read_parts(results_folder) or {"runs": []})["runs"]

    def clocks(part, **settings):
        found = [run["clocks"] for run in runs if run["part"] == part and settings.items() <= run["settings"].items()]
        if len(found) != 1:
            raise BadInput(f"{line}: the record of parts has {len(found)} rows of {part} with {', '.join(settings.values())}")
        return found[0]

    product = {"m": "m 64", "n": "n 128", "loads": "no loads"}
    return Parts(clocks("product", **product, wait="waited for") - clocks("product", **product, wait="in flight"),
                 clocks("hand-over", arrivals="1 thread arrives"), clocks("ask", boxes="2 x 16 KB"))


def predictions(runs, parts):
    """Clocks of a block that the steps take. Step 1 from parts alone: a warpgroup waits for two products, computes a softmax between them,
    and waits and arrives at the ring twice for each product, whose thread 0 asks for the next tile. Its tiles run in waves, and the last
    one is not full. The other steps from step 1 as it was measured: what is left without the products is a softmax and what belongs to it."""
    first = runs[0]
    tiles = -(-first["length"] // QUERIES) * first["heads"] * first["batch"]
    waves = -(-tiles // MULTIPROCESSORS) * MULTIPROCESSORS / tiles
    waited_for = PRODUCT + parts.wait
    alone = 2 * waves * (2 * (waited_for + parts.hand_over + parts.ask) + softmax_clocks())
    both = clocks_of_block(first) / 2
    rest = both - 2 * waited_for
    turns, overlapped = (max(4 * PRODUCT, behind + waited_for + rest) for behind in (PRODUCT, 0))
    return [f"{clocks:.0f}" for clocks in (alone, both, turns, overlapped, overlapped)]


def is_step(name):
    return name.startswith("step ")


def lengths(results):
    names = list(dict.fromkeys(run["attention"] for run in results["runs"]))
    steps = sorted(filter(is_step, names))
    backends = sorted(name for name in names if not is_step(name))
    rows = []
    for causal in (False, True):
        for length in sorted({run["length"] for run in results["runs"]}):
            here = {run["attention"]: run["tflops"] for run in results["runs"] if (run["length"], run["causal"]) == (length, causal)}
            fastest = max((here[name] for name in backends if name in here), default=None)
            of_fastest = f"{here[steps[-1]] / fastest:.2f}" if fastest and steps[-1] in here else ""
            rows.append([f"{length}, {'causal' if causal else 'full'}"] +
                        [f"{here[name]:.0f}" if name in here else "" for name in steps + backends] + [of_fastest])
    return markdown(["TFLOP/s, at length"] + steps + backends + [f"{steps[-1]}, of the fastest of these"], rows)


def steps_of(line, results, values, results_folder):
    try:
        length, causal = int(values["length"]), {"no": False, "yes": True}[values["causal"]]
    except (KeyError, ValueError):
        raise BadInput(f"{line}: needs length=, and causal=no or yes") from None
    runs = sorted((run for run in results["runs"] if is_step(run["attention"]) and (run["length"], run["causal"]) == (length, causal)),
                  key=lambda run: run["attention"])
    predicted = values.get("predicted", "," * (len(runs) - 1)).split(",")
    if predicted == ["parts"] and runs:
        predicted = predictions(runs, parts_of(line, results_folder))[:len(runs)]
    if not runs or len(predicted) != len(runs):
        raise BadInput(f"{line}: the record has {len(runs)} steps at this problem, and predicted= {len(predicted)} numbers")
    rows = []
    for i, (run, number) in enumerate(zip(runs, predicted)):
        clocks = clocks_of_block(run)
        gain = f"{runs[i - 1]['time_us_median'] / run['time_us_median']:.2f}" if i else ""
        rows.append([run["attention"], number, f"{clocks:.0f}", off_by(number, clocks), f"{run['tflops']:.0f}", gain,
                     f"{run['clock_mhz']:.0f}"])
    return markdown(*without_empty_columns(["", "predicted", "clocks of a block", "off by", "TFLOP/s", "gain", "MHz"], rows))


def attention_table(line, words, results_folder):
    """The lines below the request."""
    if not words or words[0] not in ("lengths", "steps"):
        raise BadInput(f"{line}: needs lengths or steps")
    values, _ = parse_words(line, words[1:], ("length", "causal", "predicted"))
    results = read_attention(results_folder)
    if results is None:
        return ["Not recorded yet."]
    table = lengths(results) if words[0] == "lengths" else steps_of(line, results, values, results_folder)
    return [*table, "", f"{results['gpu']}, PyTorch {results['torch']}, cuDNN {results['cudnn']}, {dated(results)}, "
                        f"commit `{results['commit']}`."]
