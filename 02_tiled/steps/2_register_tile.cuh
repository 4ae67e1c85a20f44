/// @file
/// Lesson 02, step 2: each thread keeps a tile of sums in registers.
///
/// Added since step 1: a thread computes 8 x 8 outputs instead of one. For 64 products it reads 8 elements of
/// A and 8 of B from shared memory, a quarter of an element for each product instead of two. The tiles of a
/// block grow with it.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/element.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02::register_tile {
using namespace ladder;

constexpr TileShape kTile{128, 128, 32};
constexpr int kSums = 8;  ///< a thread computes kSums x kSums elements of C
constexpr int kSide = kTile.m / kSums, kThreads = kSide * kSide;  ///< the threads form a square

using TileA = __nv_bfloat16[kTile.m][kTile.k];
using TileB = __nv_bfloat16[kTile.k][kTile.n];

struct SharedStorage {
  TileA a;
  TileB b;
};

/// Each block computes a tile of C; any m, n, k.
/// Neighbouring threads have neighbouring columns, so that a warp reads neighbouring elements of B.
/// While one block loads, another one may compute.
__global__ void __launch_bounds__(kThreads, 2) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const int first_row = blockIdx.y * kTile.m, first_column = blockIdx.x * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
  float sums[kSums * kSums] = {};

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    const int k = step * kTile.k;
#pragma unroll 8  // eight loads are in flight at a time
    for (unsigned i = threadIdx.x; i < kTile.m * kTile.k; i += kThreads)  // unsigned: / shifts, % masks
      smem.a[i / kTile.k][i % kTile.k] = element(p.a, p.m, p.k, first_row + i / kTile.k, k + i % kTile.k);
#pragma unroll 8
    for (unsigned i = threadIdx.x; i < kTile.k * kTile.n; i += kThreads)
      smem.b[i / kTile.n][i % kTile.n] = element(p.b, p.k, p.n, k + i / kTile.n, first_column + i % kTile.n);
    __syncthreads();  // the tiles are complete
#pragma unroll 8      // 96 instructions for each i, without copying: the loop itself costs little
    for (int i = 0; i < kTile.k; ++i) {
      float a[kSums], b[kSums];  // each is used kSums times
#pragma unroll
      for (int j = 0; j < kSums; ++j) {
        a[j] = __bfloat162float(smem.a[y + j * kSide][i]);
        b[j] = __bfloat162float(smem.b[i][x + j * kSide]);
      }
#pragma unroll
      for (int j = 0; j < kSums * kSums; ++j) sums[j] += a[j / kSums] * b[j % kSums];
    }
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
#pragma unroll
  for (int i = 0; i < kSums * kSums; ++i) {
    const int row = first_row + y + i / kSums * kSide, column = first_column + x + i % kSums * kSide;
    if (row < p.m && column < p.n) p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sums[i]);
  }
}

/// One block for each tile of C: m is at most 65535 * kTile.m, as a grid has 65535 rows of blocks.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm,
                 {.name = "02_tiled",
                  .grid = dim3(tiles_over(p.n, kTile.n), tiles_over(p.m, kTile.m)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02::register_tile
