#!/usr/bin/env python3
"""Fits the constants of plan.cpp to recorded times, and says how good its choices are.

    06_clusters_dsmem/fit_plan.py docs/results/experiments/*-plans_*.json
    06_clusters_dsmem/fit_plan.py --check docs/results/experiments/*-plans_*.json    fails if plan.cpp has other constants

The files are those of common/results/record.sh: all plans on many shapes, on one GPU. The model is plan.cpp's: a launch,
waves of tiles, K steps of a tile, and more for clusters. A wave that is not full is cheaper, because the GPU is limited by
its power. Plans that are far from the best of their shape are left out; nobody will choose them.
"""
import argparse
import json
import math
import re
import sys
from pathlib import Path

STEP_K = 64
POWER_CLOCK = 0.74  # of the highest clock: where the recorded runs of large kernels end up
FAR_FROM_BEST = 1.35
LARGE_TILE = 128 * 256
TILES = ("64x128", "128x128", "128x256", "256x128")
NAMES = ["kLaunchUs"] + [f"{tile} {how}" for tile in TILES for how in ("alone_us", "shared_us")] + ["kClusterUs", "kSumUs"]


def over(extent, tile):
    return -(-extent // tile)


def features(shape, choice, resident):
    """How often each of NAMES is paid."""
    m, n, k = shape
    tile, cluster_m, cluster_k = re.fullmatch(r"(\d+x\d+)(?:, cluster (\d)x(\d))?", choice).groups()
    tile_m, tile_n = map(int, tile.split("x"))
    cluster_m, cluster_k = int(cluster_m or 1), int(cluster_k or 1)
    blocks = cluster_m * cluster_k
    clusters = over(m, tile_m * cluster_m) * over(n, tile_n)
    waves = over(clusters, resident[blocks])
    paid = max(POWER_CLOCK * waves, clusters / resident[blocks])
    row = [0.0] * len(NAMES)
    row[0] = 1
    steps = over(over(k, STEP_K), cluster_k)
    alone = paid if cluster_m == 1 else POWER_CLOCK if tile_m * tile_n >= LARGE_TILE else 0
    row[NAMES.index(f"{tile} alone_us")] = alone * steps
    row[NAMES.index(f"{tile} shared_us")] = (paid - alone) * steps
    row[NAMES.index("kClusterUs")] = blocks > 1
    row[NAMES.index("kSumUs")] = waves * (cluster_k > 1)
    return row


def read(paths):
    """{shape: {choice: microseconds}}"""
    times = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for run in json.load(file)["runs"]:
                if "choice" in run:
                    times.setdefault((run["m"], run["n"], run["k"]), {})[run["choice"]] = run["time_us_median"]
    return times


def dot(left, right):
    return sum(x * y for x, y in zip(left, right))


def least_squares(rows, goals):
    """The x for which rows · x is nearest to goals, from the normal equations, by elimination."""
    size = len(rows[0])
    columns = list(zip(*rows))
    system = [[dot(columns[i], columns[j]) for j in range(size)] + [dot(columns[i], goals)] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(system[row][i]))
        system[i], system[pivot] = system[pivot], system[i]
        for row in range(size):
            if row != i:
                factor = system[row][i] / system[i][i]
                system[row] = [x - factor * y for x, y in zip(system[row], system[i])]
    return [system[i][size] / system[i][i] for i in range(size)]


def written_constants():
    """The constants of plan.cpp, in the order of NAMES."""
    text = (Path(__file__).parent / "plan.cpp").read_text(encoding="utf-8")
    named = dict(re.findall(r"constexpr double (k\w+) = ([\d.]+);", text))
    for tile_m, tile_n, alone, shared in re.findall(r"\{(\d+), (\d+), ([\d.]+), ([\d.]+)\}", text):
        named[f"{tile_m}x{tile_n} alone_us"], named[f"{tile_m}x{tile_n} shared_us"] = alone, shared
    return [float(named[name]) for name in NAMES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--resident", default="132,66,30", help="clusters of 1, 2 and 4 blocks that the GPU holds")
    parser.add_argument("--check", action="store_true", help="compare with plan.cpp")
    arguments = parser.parse_args()
    resident = dict(zip((1, 2, 4), map(int, arguments.resident.split(","))))
    times = read(arguments.files)

    rows, goals = [], []
    for shape, plans in times.items():
        best = min(plans.values())
        for choice, us in plans.items():
            if us < FAR_FROM_BEST * best:  # relative errors count, not microseconds
                rows.append([x / us for x in features(shape, choice, resident)])
                goals.append(1.0)
    constants = least_squares(rows, goals)
    if arguments.check:
        if [f"{x:.3f}" for x in constants] != [f"{x:.3f}" for x in written_constants()]:
            sys.exit("plan.cpp has other constants than a fit to these files; without --check they are printed")
        return
    for name, constant in zip(NAMES, constants):
        print(f"{name:20} {constant:.3f}")

    print(f"\n{'shape':20} {'choice':22} {'us':>8} {'fastest':22} {'us':>8} {'lost %':>7}")
    losses = []
    for shape, plans in times.items():
        choice = min(plans, key=lambda plan: dot(features(shape, plan, resident), constants))
        fastest = min(plans, key=plans.get)
        losses.append(plans[choice] / plans[fastest])
        print(f"{'x'.join(map(str, shape)):20} {choice:22} {plans[choice]:8.1f} {fastest:22} {plans[fastest]:8.1f} "
              f"{100 * losses[-1] - 100:7.1f}")
    print(f"lost on average: {100 * math.exp(sum(map(math.log, losses)) / len(losses)) - 100:.1f} %")


if __name__ == "__main__":
    main()
