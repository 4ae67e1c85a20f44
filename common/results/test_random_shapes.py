#!/usr/bin/env python3
"""Tests of random_shapes.py: `python3 common/results/test_random_shapes.py`."""
import sys
import unittest

sys.dont_write_bytecode = True
from random_shapes import random_shapes  # noqa: E402


class RandomShapes(unittest.TestCase):
    def test_a_seed_gives_the_shapes_that_it_always_gave(self):
        # Records name their seed: another generator would need another name.
        self.assertEqual(random_shapes(16, 3), [(353, 984, 3016), (2767, 600, 6120), (12094, 448, 10720)])
        self.assertEqual(random_shapes(16, 20), random_shapes(16, 40)[:20])

    def test_another_seed_gives_other_shapes(self):
        self.assertFalse(set(random_shapes(1, 40)) & set(random_shapes(2, 40)))

    def test_shapes_are_those_that_lessons_run_and_all_different(self):
        shapes = random_shapes(3, 1000)
        self.assertEqual(len(set(shapes)), 1000)
        for m, n, k in shapes:
            self.assertTrue(16 <= m <= 16384 and 128 <= n <= 19000 and 88 <= k <= 19000, (m, n, k))
            self.assertEqual((n % 8, k % 8), (0, 0))
            self.assertTrue(0.5e9 <= 2 * m * n * k <= 6000e9, (m, n, k))

    def test_sizes_of_every_magnitude_are_there(self):
        rows = [m for m, _, _ in random_shapes(4, 400)]
        for least in (16, 64, 256, 1024, 4096):
            self.assertTrue(any(least <= m < 4 * least for m in rows), least)


if __name__ == "__main__":
    unittest.main()
