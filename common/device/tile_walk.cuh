/// @file
/// The tiles of C that a persistent block computes, one after the other.
#pragma once
#include "common/device/tile_order.cuh"

namespace ladder {

/// Block b of g computes tiles b, b + g, b + 2g, ... of the grouped order. Every role walks the same way on
/// its own. Blocks of a cluster walk together: then the cluster counts as one block, and its tiles as one.
struct TileWalk {
  int tile_rows, tile_columns;
  int group;                   ///< tile rows of a group; see grouped_tile
  int blocks_per_cluster = 1;  ///< along x

  __device__ __forceinline__ int first() const { return static_cast<int>(blockIdx.x) / blocks_per_cluster; }
  __device__ __forceinline__ int step() const { return static_cast<int>(gridDim.x) / blocks_per_cluster; }
  __device__ __forceinline__ int end() const { return tile_rows * tile_columns; }
  /// Where in C the tile of an index lies, in tiles.
  __device__ __forceinline__ TileIndex at(int index) const {
    return grouped_tile(index, tile_rows, tile_columns, group);
  }
};

}  // namespace ladder
