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

constexpr TileShape kTile{8, 32, 1};  ///< a row is as wide as a warp

/// Each block computes a tile of C; any m, n, k.
/// Each thread computes one element of it.
__global__ void __launch_bounds__(kTile.m* kTile.n) gemm(const Gemm p) {
  const int row = blockIdx.y * kTile.m + threadIdx.y, column = blockIdx.x * kTile.n + threadIdx.x;
  if (row >= p.m || column >= p.n) return;

  // [k_loop]
  const __nv_bfloat16* a = p.a + static_cast<size_t>(row) * p.k;
  const __nv_bfloat16* b = p.b + column;
  float sum = 0;
#pragma unroll 8  // eight loads of B are in flight at a time
  for (int k = 0; k < p.k; ++k)
    sum += __bfloat162float(a[k]) * __bfloat162float(b[static_cast<size_t>(k) * p.n]);
  p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sum);
  // [k_loop]
}

/// One block for each tile of C: m is at most 65535 * kTile.m, as a grid has 65535 rows of blocks.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm,
                 {.name = "01_naive",
                  .grid = dim3(tiles_over(p.n, kTile.n), tiles_over(p.m, kTile.m)),
                  .block = dim3(kTile.n, kTile.m),
                  .stream = stream},
                 p);
}

}  // namespace lesson01
