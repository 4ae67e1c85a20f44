/// @file
/// Exercise 02.1: where in its row does a chunk of a tile lie?
///
/// A tile of 64 x 64 bf16 has rows of 128 bytes: eight chunks of 16 bytes, all 32 banks once. Threads write
/// it row by row and read it column by column, as ldmatrix does. If chunk c lies at place c in each row,
/// eight threads that read one column meet in the same four banks. Choose the places so that they do not; and
/// as TMA and wgmma choose them, which cannot be told otherwise.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kRows = 64, kChunks = 8;

/// Where in `row` chunk `chunk` lies, counted in chunks: 0 to 7.
__device__ inline int place_of(int row, int chunk) {
  // >>> yours
  return chunk ^ (row % 8);
  // <<<
}

struct SharedStorage {
  uint4 rows[kRows][kChunks];
};

/// Chunk c of row r of `from` becomes chunk r of row c of `to`; both are row-major. A thread for each row.
__global__ void transpose_chunks(const uint4* from, uint4* to) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  for (int i = threadIdx.x; i < kRows * kChunks; i += blockDim.x) {
    const int row = i / kChunks, chunk = i % kChunks;  // eight threads write one row
    smem.rows[row][place_of(row, chunk)] = from[i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kChunks; i += blockDim.x) {
    const int row = i % kRows, chunk = i / kRows;  // eight threads read eight rows
    to[i] = smem.rows[row][place_of(row, chunk)];
  }
}

inline void launch_transpose(const uint4* from, uint4* to) {
  ladder::launch(
      transpose_chunks,
      {.name = "swizzle", .grid = dim3(1), .block = dim3(kRows), .shared_bytes = sizeof(SharedStorage)}, from,
      to);
}

}  // namespace exercise
