/// @file
/// Exercise 02.1: a layout of one's own.
///
/// A tile of 32 x 32 floats passes through shared memory. Threads write it row by row. They read it twice:
/// column by column, and in fragments of 8 rows and 4 columns, as tensor cores take tf32. In each of the
/// three a warp touches 32 elements at one time, and they should lie in 32 different banks. No copy
/// engine touches this tile, so nobody prescribes its layout: choose one.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kSize = 32;  ///< rows, columns, and lanes of a warp

/// Where the element (row, column) lies in the tile: 0 to 1023, for each element another place.
__device__ inline int place_of(int row, int column) {
  // Read docs/concepts/swizzle.md and common/device/swizzled_tile.cuh.
  // >>> yours
  (void)row, (void)column;
  return 0;
  // <<<
}

/// What 32 lanes touch at one time. Each of them is numbered 0 to 31, and so are its lanes.
enum class Pattern {
  row,       ///< row i
  column,    ///< column i
  fragment,  ///< rows i / 8 * 8 to ... + 7, columns i % 8 * 4 to ... + 3; lane / 4 is the row
};

struct Place {
  int row, column;
};

__device__ inline Place element_of(Pattern pattern, int i, int lane) {
  if (pattern == Pattern::row) return {i, lane};
  if (pattern == Pattern::column) return {lane, i};
  return {i / 8 * 8 + lane / 4, i % 8 * 4 + lane % 4};
}

struct SharedStorage {
  float tile[kSize * kSize];
};

/// Brings the tile from `from` to shared memory by one pattern, and from there to `to` by another. Both are
/// row-major. A block is one warp.
__global__ void __launch_bounds__(kSize)
    through_shared(const float* from, float* to, const Pattern writes, const Pattern reads) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int lane = threadIdx.x;
  for (int i = 0; i < kSize; ++i) {
    const Place place = element_of(writes, i, lane);
    smem.tile[place_of(place.row, place.column)] = from[place.row * kSize + place.column];
    __syncwarp();
  }
  for (int i = 0; i < kSize; ++i) {
    const Place place = element_of(reads, i, lane);
    to[place.row * kSize + place.column] = smem.tile[place_of(place.row, place.column)];
    __syncwarp();
  }
}

inline void launch_through_shared(const float* from, float* to, Pattern writes, Pattern reads) {
  ladder::launch(
      through_shared,
      {.name = "own_layout", .grid = dim3(1), .block = dim3(kSize), .shared_bytes = sizeof(SharedStorage)},
      from, to, writes, reads);
}

}  // namespace exercise
