/// @file
/// The tiles of C that a persistent block computes, one after the other.
#pragma once
#include "common/device/tile_order.cuh"

namespace ladder {

/// Block b of g computes tiles b, b + g, b + 2g, ... of the grouped order. Each role walks by itself.
struct TileWalk {
  int tile_rows, tile_columns;  ///< of C
  int group = kTileGroup;       ///< rows of a group, in tiles of this walk; see grouped_tile

  /// Tiles of C that all blocks compute together.
  __host__ __device__ __forceinline__ int tiles() const { return tile_rows * tile_columns; }

  struct End {};
  struct Iterator {
    const TileWalk& walk;
    int index, step;

    __device__ __forceinline__ TileIndex operator*() const {
      return grouped_tile(index, walk.tile_rows, walk.tile_columns, walk.group);
    }
    __device__ __forceinline__ void operator++() { index += step; }
    __device__ __forceinline__ bool operator!=(End) const { return index < walk.tiles(); }
  };
  /// At the block's first tile.
  __device__ __forceinline__ Iterator begin() const {
    return {*this, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)};
  }
  __device__ __forceinline__ End end() const { return {}; }
};

/// The same for clusters of kBlocks blocks, which walk together, each over what all its blocks compute.
template <int kBlocks>
struct ClusterWalk : TileWalk {
  /// At the cluster's first tile.
  __device__ __forceinline__ Iterator begin() const {
    return {*this, static_cast<int>(blockIdx.x) / kBlocks, static_cast<int>(gridDim.x) / kBlocks};
  }
};

}  // namespace ladder
