#!/usr/bin/env python3
"""Fits the constants of plan.cpp to recorded times, and says how good its choices are.

    06_clusters_dsmem/any_shape/fit_plan.py docs/results/experiments/*-plans*.json
    06_clusters_dsmem/any_shape/fit_plan.py --check docs/results/experiments/*-plans*.json    fails if plan.cpp has other constants

The files are the records plans, plans_random and plans_short of common/results/records.py: all plans on many shapes, of an H100 and of an
H200. Those of the H200 are of earlier kernels; only what has not changed since counts: whole tiles, where M is not low. The model
is plan.cpp's, and explained there. Relative errors count, not microseconds. A plan that is slower than the best of its shape counts less, and
one that takes more than twice the time not at all: nobody will choose it.

The choices are judged twice: with the constants that are fitted to all shapes, and each shape with constants that were
fitted without it and a third of the others. The second is what a shape can expect that nobody measured.
"""
import argparse
import math
import json
import random
import re
import sys
from pathlib import Path

STEP_K = 64
NARROW = 64
LINE = 64  # elements of a cache line
WIDEST = 128 * 256  # the tile that constants are for
FEWEST_STEPS = 4
MOST_PARTS = 16
PART_STEPS = 12
STORE_STEPS = 8
# What the memory moves at most: the clock that the driver says, both edges, the width of the bus.
BYTES_PER_US = {"NVIDIA H100 80GB HBM3": 3.352e6, "NVIDIA H200": 4.917e6}
EARLIER, LOW = "d2312a0fe7e9", 192  # shared tiles, and warpgroups without rows of A, have changed since this commit
FAR_FROM_BEST = 2.0
DOUBT = 2  # a kernel's factor stays as near to 1 as if that many runs had said 1

# Where the search begins. Only the order of magnitude matters.
START = {"kLaunchUs": 2, "kFillSteps": 3, "kSumUs": 1, "kTensorUs": 1, "kClusterFactor": 1.1, "kNarrowFactor": 1.1, "kPieceUs": 0.3, "kLoadUs": 1, "kStraddleFactor": 1.5,
         "kIdleFactor": 0.5, "kMemoryFactor": 1, "kSharedLineFactor": 1, "kStreamKUs": 3, "kFixUpUs": 1}


def over(extent, tile):
    return -(-extent // tile)


class Plan:
    """What a plan does for a shape: the part of the model that has no constants. Names are those of plan.cpp."""

    def __init__(self, shape, choice, resident, bytes_per_us):
        m, n, k = shape
        named = re.fullmatch(r"(\d+x\d+)(?:, cluster (\d)x(\d)x(\d))?(, stream-K)?", choice)
        tile, *cluster, stream_k = named.groups()
        tile_m, tile_n = map(int, tile.split("x"))
        cluster_m, cluster_n, self.cluster_k = (int(blocks or 1) for blocks in cluster)
        self.kernel = tile_m, tile_n, cluster_m, cluster_n, self.cluster_k, bool(stream_k)
        self.straddles_k, self.straddles_n = k % LINE > 0, n % LINE > 0
        own_n = tile_n // self.cluster_k
        self.pieces = own_n // (NARROW if own_n % (2 * NARROW) else 2 * NARROW)
        self.tile = tile_m * tile_n / WIDEST
        at_once = resident[cluster_m * cluster_n * self.cluster_k]
        high, wide = over(m, tile_m * cluster_m), over(n, tile_n * cluster_n)
        clusters = high * wide
        # Warpgroups without rows of A compute nothing.
        self.used = min(64 * over(m, 64) / tile_m, 1)
        # Of the rows of A and the columns of B that a block needs, those that there are.
        loaded = tile_m // cluster_n
        rows = min(loaded, 8 * over(m, 8)) if high == 1 else m / (high * cluster_m) / cluster_n
        self.rows = rows / (128 + 256)
        self.columns = n / (wide * cluster_n) / cluster_m / (128 + 256)
        self.full_waves = clusters / at_once
        steps = over(k, STEP_K)
        contributors, part = self.share_last_wave(clusters, at_once, steps) if stream_k else (1, 0)
        self.shares = contributors > 1
        self.same_as_whole_tiles = bool(stream_k) and not self.shares
        self.waves = clusters // at_once + part / steps if self.shares else over(clusters, at_once)
        self.k_steps = over(steps, self.cluster_k)
        self.moves = 2 * (contributors - 1).bit_length()
        self.together, self.narrow = cluster_m * cluster_n * self.cluster_k > 1, tile_n == NARROW
        # Where rows of C do not begin with a cache line, two clusters beside each other write to the same lines.
        shared_lines = over(n, tile_n * cluster_n) if self.straddles_n else 0
        self.memory_us = 2 * (m * k + k * n + m * n) / bytes_per_us, 2 * m * LINE * shared_lines / bytes_per_us

    @staticmethod
    def share_last_wave(tiles, clusters, steps):
        """How many clusters compute steps of a shared tile, and the steps of the longest part; 1 if none is shared."""
        shared = tiles % clusters
        if shared == 0 or steps < 2 * FEWEST_STEPS:
            return 1, steps
        parts = min(clusters // shared, max(2, steps // PART_STEPS), MOST_PARTS)
        if parts > 1:
            return parts, over(steps, parts)
        rests = over(shared, clusters - shared)
        rest = int((steps - rests * STORE_STEPS) / (rests + 1))
        return (2, steps - rest) if rest >= FEWEST_STEPS and 5 * rest >= steps else (1, steps)

    def us(self, c):
        """What the plan is expected to cost but for its kernel's factor, with constants in the order of START."""
        launch, fill, sums, tensor, together, narrow, piece, load, straddle, idle, memory, shared_line, share, part = c
        straddle_k, straddle_n = straddle if self.straddles_k else 1, straddle if self.straddles_n else 1
        tiles = self.full_waves + idle * (self.waves - self.full_waves)
        steps = tiles * self.k_steps
        all_bytes, shared_lines = self.memory_us
        step_load = load * (self.rows * straddle_k + self.columns * straddle_n)
        tensor *= (together if self.together else 1) * (narrow if self.narrow else 1)
        us = launch + fill * step_load + math.hypot(
            steps * tensor * self.used * self.tile + tiles * piece * self.pieces,
            steps * step_load,
            memory * (all_bytes + shared_line * shared_lines))
        if self.cluster_k > 1:
            us += sums * max(self.waves, 1)
        if self.shares:
            us += share + part * self.moves * self.tile / self.cluster_k
        return us


def compiled_kernels():
    """Those of kernels.hpp: others may have been recorded, and left out."""
    text = (Path(__file__).parent / "kernels.hpp").read_text(encoding="utf-8")
    of_gpu = text[text.index("kGpuKernels"):text.index("kCpuKernels")]
    return {(*map(int, numbers.split(",")), bool(stream_k))
            for numbers, stream_k in re.findall(r"{(\d+(?:, \d+){4})(, true)?}", of_gpu)}


def read(paths, resident):
    """{(m, n, k, gpu): {choice: (plan, microseconds)}}, and with the same keys the microseconds of the fastest library"""
    times, libraries = {}, {}
    kernels = compiled_kernels()
    for path in paths:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        bytes_per_us = BYTES_PER_US[record["gpu"]]
        for run in record["runs"]:
            shape, us = (run["m"], run["n"], run["k"]), run["time_us_median"]
            if "choice" in run:
                plan = Plan(shape, run["choice"], resident, bytes_per_us)
                changed = record["commit"] == EARLIER and ("stream-K" in run["choice"] or run["m"] < LOW)
                if plan.kernel in kernels and not plan.same_as_whole_tiles and not changed:
                    times.setdefault((*shape, record["gpu"]), {})[run["choice"]] = plan, us
            else:
                key = (*shape, record["gpu"])
                libraries[key] = min(us, libraries.get(key, us))
    return times, libraries


def fastest(plans):
    return min(plans, key=lambda choice: plans[choice][1])


class Model:
    """Constants in the order of START, and a factor for each kernel."""

    def __init__(self, constants, factors):
        self.constants, self.factors = constants, factors

    def us(self, plan):
        return plan.us(self.constants) * self.factors.get(plan.kernel, 1)

    def cheapest(self, plans):
        return min(plans, key=lambda choice: self.us(plans[choice][0]))


def dot(left, right):
    return sum(x * y for x, y in zip(left, right))


def least_squares(columns, goals):
    """The x for which the sum of x[i] * columns[i] is nearest to goals, from the normal equations, by elimination."""
    size = len(columns)
    system = [[dot(left, right) for right in columns] + [dot(left, goals)] for left in columns]
    for i in range(size):
        system[i][i] += 1e-9  # a constant that does not matter stays where it is
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(system[row][i]))
        system[i], system[pivot] = system[pivot], system[i]
        for row in range(size):
            if row != i:
                factor = system[row][i] / system[i][i]
                system[row] = [x - factor * y for x, y in zip(system[row], system[i])]
    return [system[i][size] / system[i][i] for i in range(size)]


def log_factors(samples, logs):
    """A kernel's factor is what is left of its errors on average, and less the fewer its runs."""
    errors, weights = {}, {}
    for (plan, _, weight), log in zip(samples, logs):
        errors[plan.kernel] = errors.get(plan.kernel, 0) + weight ** 2 * log
        weights[plan.kernel] = weights.get(plan.kernel, DOUBT) + weight ** 2
    return {kernel: -error / weights[kernel] for kernel, error in errors.items()}


def fit(times):
    """The Model for which the errors are smallest, and their size, by the method of Gauss and Newton. It looks for the
    constants' logarithms: none gets negative. For any constants the best factors are known at once."""
    samples = []
    for plans in times.values():
        best = plans[fastest(plans)][1]
        samples += [(plan, us, best / us) for plan, us in plans.values() if us < FAR_FROM_BEST * best]

    def errors(logs):
        constants = [math.exp(x) for x in logs]
        wrong = [math.log(plan.us(constants) / us) for plan, us, _ in samples]
        factors = log_factors(samples, wrong)
        return ([weight * (log + factors[plan.kernel]) for (plan, _, weight), log in zip(samples, wrong)]
                + [math.sqrt(DOUBT) * log for log in factors.values()])

    logs = [math.log(x) for x in START.values()]
    now = errors(logs)
    for _ in range(100):
        slopes = []
        for i in range(len(logs)):
            moved = errors(logs[:i] + [logs[i] + 1e-5] + logs[i + 1:])
            slopes.append([(after - before) / 1e-5 for before, after in zip(now, moved)])
        step = [-x for x in least_squares(slopes, now)]
        length = 1.0
        while length > 1e-3:  # shorter, as long as errors grow
            there = [x + length * dx for x, dx in zip(logs, step)]
            then = errors(there)
            if dot(then, then) < dot(now, now):
                break
            length /= 2
        else:
            break
        logs, now = there, then
        if max(map(abs, step)) < 1e-5:
            break
    constants = [math.exp(x) for x in logs]
    factors = log_factors(samples, [math.log(plan.us(constants) / us) for plan, us, _ in samples])
    model = Model(constants, {kernel: math.exp(log) for kernel, log in sorted(factors.items())})
    return model, math.sqrt(dot(now, now) / len(samples))


def mean(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs))


def fitted_without(times, parts=3):
    """A Model for each shape that knows nothing of it."""
    shapes = sorted(times)
    random.Random(1).shuffle(shapes)
    result = {}
    for left_out in (shapes[i::parts] for i in range(parts)):
        model, _ = fit({shape: plans for shape, plans in times.items() if shape not in left_out})
        result.update((shape, model) for shape in left_out)
    return result


def print_choices(times, libraries, model):
    print(f"\n{'shape':18} {'choice':30} {'expected':>8} {'us':>8}  {'fastest':30} {'us':>8} {'lost %':>6} {'% lib':>6}")
    for shape, plans in sorted(times.items()):
        choice, best = model.cheapest(plans), fastest(plans)
        us, best_us = plans[choice][1], plans[best][1]
        expected = model.us(plans[choice][0])
        library = libraries.get(shape, math.nan)
        print(f"{'x'.join(map(str, shape[:3])):18} {choice:30} {expected:8.1f} {us:8.1f}  {best:30} {best_us:8.1f} "
              f"{100 * us / best_us - 100:6.1f} {100 * library / us:6.1f}")


def summary(times, libraries, model_for):
    losses, speeds = [], []
    for shape, plans in times.items():
        us = plans[model_for(shape).cheapest(plans)][1]
        losses.append(us / plans[fastest(plans)][1])
        if shape in libraries:
            speeds.append(libraries[shape] / us)
    return (f"lost {100 * mean(losses) - 100:.1f} % on average, at worst {100 * max(losses) - 100:.1f} %"
            + (f"; {100 * mean(speeds):.1f} % of the fastest library" if speeds else ""))


def loss_of_first(times, model, count):
    """In per cent: how much longer the fastest of the kernels that the model likes best takes than the fastest of all."""
    losses = []
    for plans in times.values():
        first = sorted(plans, key=lambda choice: model.us(plans[choice][0]))[:count]
        losses.append(min(plans[choice][1] for choice in first) / plans[fastest(plans)][1])
    return 100 * mean(losses) - 100


def lines_of(model):
    """What plan.cpp has of a Model."""
    constants = [f"constexpr double {name} = {constant:.3f};" for name, constant in zip(START, model.constants)]
    factors = ["{{" + ", ".join(map(str, kernel[:5])) + (", true" if kernel[5] else "") + f"}}, {factor:.3f}}},"
               for kernel, factor in model.factors.items()]
    return constants, [" ".join(factors[i:i + 3]) for i in range(0, len(factors), 3)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--resident", default="132,66,30,15",
                        help="clusters of 1, 2, 4 and 8 blocks that the GPU holds")
    parser.add_argument("--check", action="store_true", help="compare with plan.cpp")
    parser.add_argument("--write", action="store_true", help="bring plan.cpp up to the fit")
    arguments = parser.parse_args()
    resident = dict(zip((1, 2, 4, 8), map(int, arguments.resident.split(","))))
    times, libraries = read(arguments.files, resident)

    model, error = fit(times)
    constants, factors = lines_of(model)
    plan_cpp = Path(__file__).parent / "plan.cpp"
    text = before = plan_cpp.read_text(encoding="utf-8")
    for line in constants:
        text = re.sub(re.escape(line.split("=")[0]) + r"= [\d.]+;", line, text)
    text = re.sub(r"(kKernelFactors\[\] = {\n).*?};", lambda table: table[1] + "".join(f"  {line}\n" for line in factors)
                  + "};", text, flags=re.DOTALL)
    if arguments.check:
        if text != before:
            sys.exit("plan.cpp has other constants than a fit to these files; with --write it gets them")
        return
    if arguments.write:
        plan_cpp.write_text(text, encoding="utf-8")
    print("\n".join(constants + factors))
    print(f"typical error: {100 * error:.1f} %")
    print_choices(times, libraries, model)
    print(f"\nfitted to all:   {summary(times, libraries, lambda shape: model)}")
    print("the fastest of the model's first 1, 2, 3, 5 and 8 loses "
          + ", ".join(f"{loss_of_first(times, model, count):.1f}" for count in (1, 2, 3, 5, 8)) + " %")
    without = fitted_without(times)
    print(f"fitted to others: {summary(times, libraries, without.get)}")


if __name__ == "__main__":
    main()
