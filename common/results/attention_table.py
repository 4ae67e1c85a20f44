"""The newest experiment `attention`: its steps beside the kernels that PyTorch has.

    <!-- attention: lengths -->
    <!-- attention: steps length=16384 causal=no predicted=3500,2900,... -->
    <!-- end -->

`lengths`: TFLOP/s, a row for each problem and a column for each step and each of PyTorch's backends; the last one is what the last step
reaches of the fastest of them. `steps`: a row for each step at one problem: clocks that a multiprocessor takes for 128 queries and 128
keys, the parts of a causal problem that no query sees left out; what the page predicted of them, if it did, and by how much that is off.
"""
import json

from climb_table import BadInput
from page_requests import markdown, off_by, parse_words, without_empty_columns
from stale import dated

BLOCK = 128  # queries, and keys
MULTIPROCESSORS = 132  # of an H100 and an H200


def read(results_folder):
    """The newest record, or None. @throws BadInput if it is none"""
    path = max((results_folder / "experiments").glob("*-attention.json"), default=None)
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


def steps_of(line, results, values):
    try:
        length, causal = int(values["length"]), {"no": False, "yes": True}[values["causal"]]
    except (KeyError, ValueError):
        raise BadInput(f"{line}: needs length=, and causal=no or yes") from None
    runs = sorted((run for run in results["runs"] if is_step(run["attention"]) and (run["length"], run["causal"]) == (length, causal)),
                  key=lambda run: run["attention"])
    predicted = values.get("predicted", "," * (len(runs) - 1)).split(",")
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
    table = lengths(results) if words[0] == "lengths" else steps_of(line, results, values)
    return [*table, "", f"{results['gpu']}, PyTorch {results['torch']}, cuDNN {results['cudnn']}, {dated(results)}, "
                        f"commit `{results['commit']}`."]
