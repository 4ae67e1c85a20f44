/// @file
/// Which tile of C a block computes.
#pragma once
#include <cuda_runtime.h>

namespace ladder {

/// A tile of C, counted in tiles.
struct TileIndex {
  int row, column;
};

/// Tiles in an order that keeps the tiles at work at one time close together: kGroup tiles down, then one to
/// the right. A wave of blocks then covers a nearly square part of C, whose rows of A and columns of B stay
/// in the L2 cache.
template <int kGroup = 16>
__device__ __forceinline__ TileIndex grouped_tile(int index, int tile_rows, int tile_columns) {
  const int group = index / (kGroup * tile_columns);
  const int first_row = group * kGroup;
  const int rows =
      tile_rows - first_row < kGroup ? tile_rows - first_row : kGroup;  // the last group may be lower
  const int in_group = index - first_row * tile_columns;
  return {first_row + in_group % rows, in_group / rows};
}

}  // namespace ladder
