/// @file
/// Exercise 01.1: which element of C does a thread compute?
///
/// The kernel multiplies as lesson 01 does, but its blocks are one-dimensional: 256 threads cover 8 rows and
/// 32 columns of C. Say which element is whose, so that a warp reads and writes whole sectors.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/gemm.hpp"

namespace exercise {

constexpr int kRows = 8, kColumns = 32;  ///< of C, that a block computes

struct Element {
  int row, column;
};

/// The element of C that a thread computes.
/// @param thread 0 .. 255 within its block. @param block_row, block_column which block of 8 x 32 elements
__device__ inline Element element_of(int thread, int block_row, int block_column) {
  // Read 01_naive/README.md and common/device/tile_shape.cuh.
  // >>> yours
  return {block_row * kRows + thread / kColumns, block_column * kColumns + thread % kColumns};
  // <<<
}

/// c = a · b, one thread for each element; any m, n and k.
__global__ void gemm(const ladder::Gemm p) {
  const Element mine = element_of(threadIdx.x, blockIdx.y, blockIdx.x);
  if (mine.row < 0 || mine.column < 0 || mine.row >= p.m || mine.column >= p.n) return;
  float sum = 0;
  for (int k = 0; k < p.k; ++k)
    sum += __bfloat162float(p.a[mine.row * p.k + k]) * __bfloat162float(p.b[k * p.n + mine.column]);
  p.c[mine.row * p.n + mine.column] = __float2bfloat16(sum);
}

inline void launch_gemm(const ladder::Gemm& p) {
  ladder::launch(gemm,
                 {.name = "coalesced_index",
                  .grid = dim3(ladder::tiles_over(p.n, kColumns), ladder::tiles_over(p.m, kRows)),
                  .block = dim3(kRows * kColumns)},
                 p);
}

}  // namespace exercise
