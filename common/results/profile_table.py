"""The table of what Nsight Compute counted, from the newest file that profile.sh wrote.

    <!-- profile: rows=group only=lesson:05_ws_double_buffer -->
    <!-- end -->

rows=KEY names the rows after a setting, or after the lesson (rows=lesson, the default); only= as for tables. Each column
is made from the first of its metrics that the profiler had.
"""
import json

from climb_table import BadInput
from page_requests import markdown, meets, parse_words, value

NONE_YET = "No profile has been recorded yet: `common/results/profile.sh` does it."

TENSOR_METRICS = ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                  "sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active",
                  "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
                  "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active")
L2_TO_SM_METRICS = ("l1tex__m_xbar2l1tex_read_bytes.sum", "lts__t_bytes.sum")
# Title, metrics in order of preference, what they are multiplied by, digits.
COLUMNS = (
    ("tensor cores, %", TENSOR_METRICS, 1, 0),
    ("L2 hits, %", ("lts__t_sector_hit_rate.pct",), 1, 0),
    ("L2 to SMs, MB", L2_TO_SM_METRICS, 1e-6, 0),
    ("read, MB", ("dram__bytes_read.sum",), 1e-6, 0),
    ("written, MB", ("dram__bytes_write.sum",), 1e-6, 0),
    ("warps, %", ("sm__warps_active.avg.pct_of_peak_sustained_active",), 1, 0),
    ("registers", ("launch__registers_per_thread",), 1, 0),
    ("shared, KB", ("launch__shared_mem_per_block_dynamic", "launch__shared_mem_per_block"), 1 / 1024, 0),
)
LIMIT = "launch__occupancy_limit_"
LIMITS = {"registers": "registers", "shared_mem": "shared memory", "warps": "warps", "blocks": "blocks"}
STALL, STALL_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
SHOWN_STALLS = 2


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


def stalls(metrics):
    """What warps wait for most often, each with its share of the warps that did not issue."""
    reasons = {name.removeprefix(STALL).removesuffix(STALL_END).replace("_", " "): figure
               for name, figure in metrics.items() if name.startswith(STALL) and name.endswith(STALL_END)}
    reasons.pop("selected", None)
    total = sum(reasons.values())
    top = sorted(reasons, key=reasons.get, reverse=True)[:SHOWN_STALLS] if total else []
    return ", ".join(f"{reason} {100 * reasons[reason] / total:.0f} %" for reason in top)


def title(launch, key):
    if key != "lesson":
        return f"`{value(launch, key)}`"
    settings = ", ".join(f"{name} {chosen}" for name, chosen in sorted(launch["settings"].items()))
    return f"[{launch['lesson']}](../{launch['lesson']}/)" + (f", {settings}" if settings else "")


def origin(profile, launches):
    sizes = ", ".join(sorted({f"{run['m']}×{run['n']}×{run['k']}" for run in launches}))
    used = [next((name for name in names if any(name in run["metrics"] for run in launches)), None)
            for names in (TENSOR_METRICS, L2_TO_SM_METRICS)]
    metrics = " and ".join(f"`{name}`" for name in used if name)
    return (f"{profile['gpu']}, {profile['date']}, commit `{profile['commit']}`, {sizes}, one launch each under Nsight "
            f"Compute {profile['profiler']}, caches flushed before it" + (f"; {metrics}." if metrics else "."))


def profile_table(line, words, folder):
    """The lines that stand for the request; the newest profile of `folder` is taken."""
    values, only = parse_words(line, words, ("rows",))
    newest = max(folder.glob("*.json"), default=None)
    if newest is None:
        return [NONE_YET]
    profile = read_profile(newest)
    launches = [launch for launch in profile["launches"] if meets(launch, only)]
    if not launches:
        raise BadInput(f"{line}: no launch in {newest.name} is like that")
    key = values.get("rows", "lesson")
    header = [key] + [name for name, *_ in COLUMNS] + ["blocks an SM limited by", "warps wait for"]
    rows = [[title(run, key)] + [cell(run["metrics"], *column) for _, *column in COLUMNS]
            + [limiter(run["metrics"]), stalls(run["metrics"])] for run in launches]
    return markdown(header, rows) + ["", origin(profile, launches)]
