/// @file
/// The check of exercise 04.b: tiles inside of the matrices and at their edges.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void expect_bytes(ladder::TileShape tile, int rows, int columns, int k) {
  const int right = 2 * tile.k * (tile.m + tile.n);
  const int inside_k = std::min(k, tile.k),
            inside = 2 * inside_k * (std::min(rows, tile.m) + std::min(columns, tile.n));
  expect_returned(
      fmt::format("expected_bytes({{{}, {}, {}}}, {}, {}, {})", tile.m, tile.n, tile.k, rows, columns, k),
      exercise::expected_bytes(tile, rows, columns, k), right,
      {{right / 2, "an element has 2 bytes"},
       {2 * tile.m * tile.k, "that counts A alone"},
       {2 * 64 * (tile.m + tile.k), "that counts one box of each: how many boxes has the tile of B?"},
       {inside, "TMA fills elements outside of a matrix with zeros: does it count their bytes?"}});
}

void check() {
  for (const ladder::TileShape tile : {ladder::TileShape{64, 192, 128}, {128, 256, 64}, {128, 128, 64}}) {
    expect_bytes(tile, 1000, 1000, 1000);
    expect_bytes(tile, 3, 1000, 1000);
    expect_bytes(tile, 1000, 8, 1000);
    expect_bytes(tile, 77, 40, 16);
  }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
