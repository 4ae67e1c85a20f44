#!/usr/bin/env python3
"""Fits the constants of plan.cpp to recorded times, and says how good its choices are.

    06_clusters_dsmem/fit_plan.py docs/results/experiments/*-plans.json
    06_clusters_dsmem/fit_plan.py --check docs/results/experiments/*-plans.json    fails if plan.cpp has other constants

The files are those of common/results/record.sh: all plans on many shapes, on one GPU. The model is plan.cpp's, and
explained there. Relative errors count, not microseconds. A plan that is slower than the best of its shape counts less, and
one that takes more than twice the time not at all: nobody will choose it.

The choices are judged twice: with the constants that are fitted to all shapes, and each shape with constants that were
fitted without it and a third of the others. The second is what a shape can expect that nobody measured.
"""
import argparse
import functools
import math
import json
import random
import re
import sys
from pathlib import Path

STEP_K = 64
WARPGROUP_ROWS = 64
NARROW = 64
LINE = 64  # elements of a cache line
WIDEST = 128 * 256  # the tile that constants are for
FEWEST_STEPS = 4
MOST_WAVES = 8
FAR_FROM_BEST = 2.0

# Where the search begins. Only the order of magnitude matters.
START = {"kLaunchUs": 3, "kSumUs": 1, "kTensorUs": 1, "kTogether": 1.1, "kLone": 1.2, "kNarrow": 1.1, "kLoadUs": 1,
         "kStraddle": 1.5, "kIdle": 0.5, "kMegabyteUs": 0.3, "kShareUs": 3, "kPartUs": 1}


def over(extent, tile):
    return -(-extent // tile)


class Plan:
    """What a plan does for a shape: the part of the model that has no constants. Names are those of plan.cpp."""

    def __init__(self, shape, choice, resident):
        m, n, k = shape
        named = re.fullmatch(r"(\d+x\d+)(?:, cluster (\d)x(\d)x(\d))?(, stream-K)?", choice)
        tile, cluster_m, cluster_n, cluster_k, stream_k = named.groups()
        tile_m, tile_n = map(int, tile.split("x"))
        cluster_m, cluster_n, self.cluster_k = int(cluster_m or 1), int(cluster_n or 1), int(cluster_k or 1)
        self.blocks = cluster_m * cluster_n * self.cluster_k
        self.straddles_k, self.straddles_n = k % LINE > 0, n % LINE > 0
        self.tile = tile_m * tile_n / WIDEST
        at_once = resident[self.blocks]
        high, wide = over(m, tile_m * cluster_m), over(n, tile_n * cluster_n)
        clusters = high * wide
        # Of the rows of A and the columns of B that a block needs, those that there are.
        self.rows = m / (high * cluster_m) / cluster_n / (128 + 256)
        self.columns = n / (wide * cluster_n) / cluster_m / (128 + 256)
        self.full_waves = clusters / at_once
        steps = over(k, STEP_K)
        shared = self.tiles_to_share(clusters, at_once, steps) if stream_k else 0
        self.shares = shared > 0
        self.same_as_whole_tiles = bool(stream_k) and not self.shares
        self.waves = self.full_waves if self.shares else over(clusters, at_once)
        self.k_steps = over(steps, self.cluster_k)
        if self.shares:
            parts = at_once // shared + (2 if at_once % shared else 0)
            self.moves = 2 if parts == 2 else parts + 1
        self.lone, self.narrow = tile_m == WARPGROUP_ROWS, tile_n == NARROW
        self.area = tile_m * tile_n
        self.megabytes = 2e-6 * (m * k + k * n), 2e-6 * m * n

    @staticmethod
    def tiles_to_share(tiles, clusters, steps):
        rest = tiles % clusters
        if rest == 0 or tiles > MOST_WAVES * clusters or steps < 2 * FEWEST_STEPS:
            return 0
        return tiles if tiles < clusters else clusters + rest

    def us(self, c):
        """What the plan is expected to cost, with constants in the order of START."""
        launch, sums, tensor, together, lone, narrow, load, straddle, idle, megabyte, share, part = c
        straddle_k, straddle_n = straddle if self.straddles_k else 1, straddle if self.straddles_n else 1
        steps = self.k_steps * (self.full_waves + idle * (self.waves - self.full_waves))
        inputs, output = self.megabytes
        waits = (together if self.blocks > 1 else 1) * (lone if self.lone else 1) * (narrow if self.narrow else 1)
        us = launch + math.hypot(steps * tensor * self.tile * waits,
                                 steps * load * (self.rows * straddle_k + self.columns * straddle_n),
                                 megabyte * (inputs + output * straddle_n))
        if self.cluster_k > 1:
            us += sums * max(self.waves, 1)
        if self.shares:
            us += share + part * self.moves * self.tile / self.cluster_k
        return us


    def expected_us(self, c):
        """The same as plan.cpp's estimate, with the factor there that is not fitted."""
        return self.us(c) * (written("kShareFromOneWave") if self.shares and self.full_waves > 1 else 1)


def read(paths, resident):
    """{shape: {choice: (plan, microseconds)}}, and {shape: microseconds of the fastest library}"""
    times, libraries = {}, {}
    for path in paths:
        for run in json.loads(Path(path).read_text(encoding="utf-8"))["runs"]:
            shape, us = (run["m"], run["n"], run["k"]), run["time_us_median"]
            if "choice" in run:
                plan = Plan(shape, run["choice"], resident)
                if not plan.same_as_whole_tiles:
                    times.setdefault(shape, {})[run["choice"]] = plan, us
            else:
                libraries[shape] = min(us, libraries.get(shape, us))
    return times, libraries


def fastest(plans):
    return min(plans, key=lambda choice: plans[choice][1])


def cheapest(plans, constants):
    """What the model chooses; of equals the largest tile, as plan.cpp's list has it."""
    return min(plans, key=lambda choice: (plans[choice][0].expected_us(constants), -plans[choice][0].area))


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


def fit(times):
    """The constants for which the errors are smallest, by the method of Gauss and Newton. It looks for their logarithms:
    no constant gets negative."""
    samples = []
    for plans in times.values():
        best = plans[fastest(plans)][1]
        samples += [(plan, us, best / us) for plan, us in plans.values() if us < FAR_FROM_BEST * best]

    def errors(logs):
        constants = [math.exp(x) for x in logs]
        return [weight * math.log(plan.us(constants) / us) for plan, us, weight in samples]

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
        if max(map(abs, step)) < 1e-7:
            break
    return [math.exp(x) for x in logs], math.sqrt(dot(now, now) / len(now))


def mean(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs))


def fitted_without(times, parts=3):
    """Constants for each shape that know nothing of it."""
    shapes = sorted(times)
    random.Random(1).shuffle(shapes)
    result = {}
    for left_out in (shapes[i::parts] for i in range(parts)):
        constants, _ = fit({shape: plans for shape, plans in times.items() if shape not in left_out})
        result.update((shape, constants) for shape in left_out)
    return result


def print_choices(times, libraries, constants):
    print(f"\n{'shape':18} {'choice':30} {'expected':>8} {'us':>8}  {'fastest':30} {'us':>8} {'lost %':>6} {'% lib':>6}")
    for shape, plans in sorted(times.items()):
        choice, best = cheapest(plans, constants), fastest(plans)
        us, best_us = plans[choice][1], plans[best][1]
        expected = plans[choice][0].expected_us(constants)
        library = libraries.get(shape, math.nan)
        print(f"{'x'.join(map(str, shape)):18} {choice:30} {expected:8.1f} {us:8.1f}  {best:30} {best_us:8.1f} "
              f"{100 * us / best_us - 100:6.1f} {100 * library / us:6.1f}")


def summary(times, libraries, constants_for):
    losses, speeds = [], []
    for shape, plans in times.items():
        us = plans[cheapest(plans, constants_for(shape))][1]
        losses.append(us / plans[fastest(plans)][1])
        if shape in libraries:
            speeds.append(libraries[shape] / us)
    return (f"lost {100 * mean(losses) - 100:.1f} % on average, at worst {100 * max(losses) - 100:.1f} %"
            + (f"; {100 * mean(speeds):.1f} % of the fastest library" if speeds else ""))


def print_sharing_from_one_wave(times, constants):
    """What stream-K gains over whole tiles of the same plan, by the fit and by the clock: kShareFromOneWave makes up for
    the difference."""
    pairs = []
    for plans in times.values():
        for choice, (plan, us) in plans.items():
            whole = plans.get(choice.replace(", stream-K", ""))
            if plan.shares and plan.full_waves > 1 and whole:
                pairs.append((whole[0].us(constants) / plan.us(constants), whole[1] / us))
    print(f"\nstream-K against whole tiles that would fill a wave, {len(pairs)} pairs; the fit promises "
          f"{100 * mean(promised / measured for promised, measured in pairs) - 100:.1f} % too much")
    for low, high, name in ((0, 1, "a loss"), (1, 1.03, "0 to 3 %"), (1.03, 9, "more than 3 %")):
        measured = [gain for promised, gain in pairs if low <= promised < high]
        print(f"  promised {name}: {len(measured)} pairs, {100 * mean(measured) - 100:+.1f} %, "
              f"{sum(gain > 1 for gain in measured)} gain")


@functools.cache
def constants_of_plan_cpp():
    text = (Path(__file__).parent / "plan.cpp").read_text(encoding="utf-8")
    return dict(re.findall(r"constexpr double (k\w+) = ([\d.]+);", text))


def written(name):
    return float(constants_of_plan_cpp()[name])


def written_constants():
    """The constants of plan.cpp, in the order of START."""
    return [constants_of_plan_cpp().get(name) for name in START]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--resident", default="132,66,30,15",
                        help="clusters of 1, 2, 4 and 8 blocks that the GPU holds")
    parser.add_argument("--check", action="store_true", help="compare with plan.cpp")
    arguments = parser.parse_args()
    resident = dict(zip((1, 2, 4, 8), map(int, arguments.resident.split(","))))
    times, libraries = read(arguments.files, resident)

    constants, error = fit(times)
    printed = [f"{x:.3f}" for x in constants]
    if arguments.check:
        if printed != written_constants():
            sys.exit("plan.cpp has other constants than a fit to these files; without --check they are printed")
        return
    for name, constant in zip(START, printed):
        print(f"constexpr double {name} = {constant};")
    print(f"typical error: {100 * error:.1f} %")
    print_choices(times, libraries, constants)
    print_sharing_from_one_wave(times, constants)
    print(f"\nfitted to all:   {summary(times, libraries, lambda shape: constants)}")
    without = fitted_without(times)
    print(f"fitted to others: {summary(times, libraries, without.get)}")


if __name__ == "__main__":
    main()
