/// @file
/// Lesson 01: one thread computes one element of C.
///
/// Idea: neighbouring threads compute neighbouring columns, so that a warp reads 32 neighbouring elements of
/// a row of B, in two sectors, and one element of A, which its lanes share. Still every product costs two
/// loads.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson01 {
using namespace ladder;

/// How threads are laid over C. `rows` swaps the two axes: the same work, but a warp's loads of A then lie in
/// one column.
enum class Along {
  columns,  ///< of C: neighbouring threads have neighbouring columns
  rows      ///< of C: they have neighbouring rows
};

constexpr int kBlockFast = 32;  ///< threads along the axis that threadIdx.x walks: a warp
constexpr int kBlockSlow = 8;   ///< threads along the other

/// c[row, column] = the row of a times the column of b, for any m, n, k.
template <Along kAlong>
__global__ void __launch_bounds__(kBlockFast* kBlockSlow) gemm(const Gemm p) {
  const int fast = blockIdx.x * kBlockFast + threadIdx.x, slow = blockIdx.y * kBlockSlow + threadIdx.y;
  const int row = kAlong == Along::columns ? slow : fast;
  const int column = kAlong == Along::columns ? fast : slow;
  if (row >= p.m || column >= p.n) return;

  // [dot_product]
  const __nv_bfloat16* a = p.a + static_cast<size_t>(row) * p.k;
  const __nv_bfloat16* b = p.b + column;
  float sum = 0;
#pragma unroll 8  // eight loads of B are on their way at a time
  for (int k = 0; k < p.k; ++k)
    sum += __bfloat162float(a[k]) * __bfloat162float(b[static_cast<size_t>(k) * p.n]);
  p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sum);
  // [dot_product]
}

/// One thread for each element of C, in blocks of 32 x 8: at most 524,280 along the slow axis (grid.y).
template <Along kAlong>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const int fast = kAlong == Along::columns ? p.n : p.m, slow = kAlong == Along::columns ? p.m : p.n;
  ladder::launch(gemm<kAlong>,
                 {.name = "01_naive",
                  .grid = dim3(tiles_over(fast, kBlockFast), tiles_over(slow, kBlockSlow)),
                  .block = dim3(kBlockFast, kBlockSlow),
                  .stream = stream},
                 p);
}

}  // namespace lesson01
