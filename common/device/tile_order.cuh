/// @file
/// Which tile of C a block computes.
#pragma once
#include <cuda_runtime.h>

namespace ladder {

/// A tile of C, counted in tiles.
struct TileIndex {
  int row, column;
};

constexpr int kTileGroup = 16;  ///< tiles high: the 264 blocks that an H200 runs of lesson 02 cover 16 x 16.5

/// The order of tiles: `group` tiles down, then one to the right. A wave of blocks then covers a nearly
/// square part of C, whose rows of A and columns of B stay in the L2 cache. CUTLASS calls this the
/// threadblock swizzle or rasterization order, Triton grouped ordering.
__device__ __forceinline__ TileIndex grouped_tile(int index, int tile_rows, int tile_columns,
                                                  int group = kTileGroup) {
  const int first_row = index / (group * tile_columns) * group;
  const int rows = tile_rows - first_row < group ? tile_rows - first_row : group;  // the last may be lower
  const int in_group = index - first_row * tile_columns;
  return {first_row + in_group % rows, in_group / rows};
}

}  // namespace ladder
