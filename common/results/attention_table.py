"""The newest experiment `attention`: its steps beside the kernels that PyTorch has.

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

from climb_table import BadInput
from page_requests import markdown, off_by, parse_words, without_empty_columns
from parts_table import read_parts
from record_files import newest
from stale import dated

BLOCK = 128  # queries, and keys
MULTIPROCESSORS = 132  # of an H100 and an H200


def read(results_folder):
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
    results = read(results_folder)
    if results is None:
        return ["Not recorded yet."]
    table = lengths(results) if words[0] == "lengths" else steps_of(line, results, values, results_folder)
    return [*table, "", f"{results['gpu']}, PyTorch {results['torch']}, cuDNN {results['cudnn']}, {dated(results)}, "
                        f"commit `{results['commit']}`."]
