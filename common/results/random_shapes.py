"""Sizes of matrix products that nobody chose, to judge a kernel by.

M is anything from 16 to 16384; N from 128 and K from 88 up to 19000 are multiples of 8, as TMA wants. All three are as often
between 128 and 256 as between 4096 and 8192. A product takes 0.5 to 6000 GFLOP, so that it fills a GPU, for at most some
milliseconds. The same seed gives the same shapes on every machine.
"""
import math
import random

LEAST_GFLOP, MOST_GFLOP, MOST_K = 0.5, 6000, 19000


def log_uniform(draw, least, most):
    return int(math.exp(draw.uniform(math.log(least), math.log(most))))


def random_shapes(seed, count, most_k=MOST_K):
    """A list of (M, N, K), without repetition, and with K of at most most_k."""
    draw, shapes = random.Random(seed), {}
    while len(shapes) < count:
        m = log_uniform(draw, 16, 16384)
        n = log_uniform(draw, 128, 19000) // 8 * 8
        k = log_uniform(draw, 88, most_k) // 8 * 8
        if LEAST_GFLOP <= 2e-9 * m * n * k <= MOST_GFLOP:
            shapes[m, n, k] = None
    return list(shapes)
