/// @file
/// Exercise 05.5: an order of the tiles in which each wave goes on where the last one ended.
///
/// A GPU computes as many tiles at a time as it holds blocks: a wave. All tiles of a row of C need the same
/// strip of A, all tiles of a column the same strip of B. The L2 cache brings a strip from memory once for
/// all tiles of a wave. Here L2 has room for 8 strips, as many as a square wave of 16 tiles needs, and the
/// next wave finds them there; a wave that needs more leaves none.
///
/// The lessons' order, grouped_tile(), makes waves nearly square. But when a group of rows ends at the right
/// edge of C, the next group begins at the left edge, where both strips are new to L2. Write an order whose
/// waves are as square as these, but without this jump: only the rows of A are new where a group begins.
#pragma once
#include "common/cuda/launch.cuh"

namespace exercise {

/// A tile of C, counted in tiles.
struct Tile {
  int row, column;
};

/// Which tile is the index-th of tile_rows x tile_columns. A group has `group` rows of tiles; the last may be
/// lower.
__device__ inline Tile tile_at(int index, int tile_rows, int tile_columns, int group) {
  // Read docs/concepts/memory_and_roofline.md and common/device/tile_order.cuh.
  // >>> yours
  const int whole = index / (group * tile_columns), first_row = whole * group;
  const int rows = tile_rows - first_row < group ? tile_rows - first_row : group;
  const int in_group = index - first_row * tile_columns, column = in_group / rows;
  return {first_row + in_group % rows, whole % 2 == 0 ? column : tile_columns - 1 - column};
  // <<<
}

/// Writes the tile of each index to rows[index] and columns[index].
__global__ void list_tiles(float* rows, float* columns, const int tile_rows, const int tile_columns,
                           const int group) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= tile_rows * tile_columns) return;
  const Tile tile = tile_at(index, tile_rows, tile_columns, group);
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
