/// @file
/// The check of exercise 02.a: tiles that cover C exactly, and with edges.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::TileShape;
using ladder::exercise::expect_returned;

void expect_step(TileShape tile) {
  const int of_a = tile.m * tile.k, of_b = tile.k * tile.n;
  expect_returned(
      fmt::format("elements_of_a_step({{{}, {}, {}}})", tile.m, tile.n, tile.k),
      exercise::elements_of_a_step(tile), of_a + of_b,
      {{of_a, "that counts A's tile only: where is B's?"},
       {tile.m * tile.n, "that counts the block's elements of C; it loads elements of A and B"},
       {2 * (of_a + of_b), "that counts bytes"},
       {2 * tile.m * tile.n * tile.k, "a block without shared memory would load that many elements"}});
}

void expect_times(int m, int n, TileShape tile) {
  const int blocks = (n + tile.n - 1) / tile.n;
  expect_returned(fmt::format("times_loaded({}, {}, {{{}, {}, {}}})", m, n, tile.m, tile.n, tile.k),
                  exercise::times_loaded(m, n, tile), blocks,
                  {{n / tile.n, "which block covers the last columns?"},
                   {(m + tile.m - 1) / tile.m, "that counts the blocks that need the same column of B"},
                   {n, "without shared memory it would be loaded that often"},
                   {1, "a block loads it once, but several blocks need it"}});
}

void check() {
  const TileShape tiles[] = {{32, 32, 32}, {128, 128, 64}, {128, 256, 64}};
  for (const TileShape& tile : tiles) expect_step(tile);
  for (const TileShape& tile : tiles)
    for (const int m : {256, 4096, 300})
      for (const int n : {1024, 5000, 100}) expect_times(m, n, tile);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
