/// @file
/// Exercise 05.1: the order in which tiles of C are computed.
///
/// A GPU computes as many tiles at a time as it holds blocks: a wave. All tiles of a row of C need the same
/// rows of A, all tiles of a column the same columns of B, and what a wave has in common comes from the L2
/// cache. So a wave should be as square as possible. Walk `group` tiles down, then one to the right; below
/// the first group begins the next.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/tile_order.cuh"

namespace exercise {

/// Which tile is the index-th of tile_rows x tile_columns. The last group may be lower than `group`.
__device__ inline ladder::TileIndex tile_at(int index, int tile_rows, int tile_columns, int group) {
  // >>> yours
  const int first_row = index / (group * tile_columns) * group;
  const int rows = tile_rows - first_row < group ? tile_rows - first_row : group;
  const int in_group = index - first_row * tile_columns;
  return {first_row + in_group % rows, in_group / rows};
  // <<<
}

/// Writes the tile of each index to rows[index] and columns[index].
__global__ void list_tiles(float* rows, float* columns, const int tile_rows, const int tile_columns,
                           const int group) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= tile_rows * tile_columns) return;
  const ladder::TileIndex tile = tile_at(index, tile_rows, tile_columns, group);
  rows[index] = static_cast<float>(tile.row);
  columns[index] = static_cast<float>(tile.column);
}

inline void launch_list_tiles(float* rows, float* columns, int tile_rows, int tile_columns, int group) {
  constexpr int kThreads = 64;
  ladder::launch(list_tiles,
                 {.name = "tile_order",
                  .grid = dim3((tile_rows * tile_columns + kThreads - 1) / kThreads),
                  .block = dim3(kThreads)},
                 rows, columns, tile_rows, tile_columns, group);
}

}  // namespace exercise
