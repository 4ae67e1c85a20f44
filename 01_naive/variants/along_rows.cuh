/// @file
/// Lesson 01 with its threads laid the other way: neighbouring threads compute neighbouring rows of C. It is
/// the same work, but the loads of a warp from A lie in one column, in 32 sectors.
#pragma once
#include "01_naive/gemm.cuh"

namespace lesson01::along_rows {

/// As lesson01::gemm, with the two axes of a block swapped.
__global__ void __launch_bounds__(kTile.m* kTile.n) gemm(const Gemm p) {
  const int row = blockIdx.x * kTile.n + threadIdx.x, column = blockIdx.y * kTile.m + threadIdx.y;
  if (row >= p.m || column >= p.n) return;

  const __nv_bfloat16* a = p.a + static_cast<size_t>(row) * p.k;
  const __nv_bfloat16* b = p.b + column;
  float sum = 0;
#pragma unroll 8
  for (int k = 0; k < p.k; ++k)
    sum += __bfloat162float(a[k]) * __bfloat162float(b[static_cast<size_t>(k) * p.n]);
  p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sum);
}

/// One thread for each element of C: n is at most 65535 * kTile.m.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm,
                 {.name = "01_naive, along rows",
                  .grid = dim3(tiles_over(p.m, kTile.n), tiles_over(p.n, kTile.m)),
                  .block = dim3(kTile.n, kTile.m),
                  .stream = stream},
                 p);
}

}  // namespace lesson01::along_rows
