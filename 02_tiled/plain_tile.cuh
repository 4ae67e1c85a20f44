/// @file
/// A tile in shared memory like SwizzledTile (common/device/swizzled_tile.cuh), but without the swizzle.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace lesson02 {

/// A tile of kTileRows x kTileColumns bf16, in panels of 64 columns. A chunk of 16 bytes lies where its row
/// and column say.
template <int kTileRows, int kTileColumns>
struct alignas(16) PlainTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kChunk = 8;  ///< elements in 16 bytes
  static constexpr int kChunksPerRow = kColumns / kChunk;
  static constexpr int kChunks = kRows * kChunksPerRow;

  __nv_bfloat16 panels[kColumns / 64][kRows][64];

  /// The 16-byte chunk that holds (row, column) up to column + 7; column is a multiple of 8.
  __device__ __forceinline__ __nv_bfloat16* chunk(int row, int column) {
    return &panels[column / 64][row][column % 64];
  }
  /// One element.
  __device__ __forceinline__ const __nv_bfloat16& at(int row, int column) const {
    return panels[column / 64][row][column % 64];
  }
};

}  // namespace lesson02
