/// @file
/// A tile in shared memory, row by row, whose chunks of 16 bytes threads store together.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace lesson02 {

/// A tile of kTileRows x kTileColumns bf16. tile[i][j] is an element, as of an array.
template <int kTileRows, int kTileColumns>
struct alignas(16) PlainTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kChunk = 8;  ///< elements in 16 bytes
  static constexpr int kChunksPerRow = kColumns / kChunk;
  static constexpr int kChunks = kRows * kChunksPerRow;

  __nv_bfloat16 elements[kRows][kColumns];

  __device__ __forceinline__ const __nv_bfloat16* operator[](int row) const { return elements[row]; }

  /// Stores what this thread's TileShare has loaded. As that takes neighbouring chunks for neighbouring
  /// threads, chunk i of a thread is chunk i * threads + threadIdx.x of the tile.
  template <int kShare>
  __device__ __forceinline__ void store(const uint4 (&chunks)[kShare]) {
    constexpr int kThreads = kChunks / kShare;
#pragma unroll
    for (int i = 0; i < kShare; ++i)
      reinterpret_cast<uint4*>(elements)[i * kThreads + threadIdx.x] = chunks[i];
  }
};

}  // namespace lesson02
