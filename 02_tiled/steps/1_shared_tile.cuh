/// @file
/// Lesson 02, step 1: the threads of a block share tiles of A and B in shared memory.
///
/// Added since 01: a block brings a tile of A and a tile of B to shared memory, and each of its 32 x 32
/// threads reads them from there. An element comes from global memory once for 32 products instead of once
/// for each.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/element.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02::shared_tile {
using namespace ladder;

constexpr TileShape kTile{32, 32, 32};  ///< a row is as wide as a warp

using TileA = __nv_bfloat16[kTile.m][kTile.k];
using TileB = __nv_bfloat16[kTile.k][kTile.n];

struct SharedStorage {
  TileA a;
  TileB b;
};

/// Each block computes a tile of C; any m, n, k.
/// Each thread computes one element of it.
/// While one block loads, another one may compute: an SM holds two, if a thread takes 32 registers at most.
__global__ void __launch_bounds__(kTile.m* kTile.n, 2) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const int row = blockIdx.y * kTile.m + threadIdx.y, column = blockIdx.x * kTile.n + threadIdx.x;
  const int k_steps = tiles_over(p.k, kTile.k);

  const int y = threadIdx.y, x = threadIdx.x;
  float sum = 0;

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    const int k = step * kTile.k;
    smem.a[y][x] = element(p.a, p.m, p.k, row, k + x);
    smem.b[y][x] = element(p.b, p.k, p.n, k + y, column);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int i = 0; i < kTile.k; ++i) sum += __bfloat162float(smem.a[y][i]) * __bfloat162float(smem.b[i][x]);
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
  if (row < p.m && column < p.n) p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sum);
}

/// One block for each tile of C: m is at most 65535 * kTile.m, as a grid has 65535 rows of blocks.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm,
                 {.name = "02_tiled",
                  .grid = dim3(tiles_over(p.n, kTile.n), tiles_over(p.m, kTile.m)),
                  .block = dim3(kTile.n, kTile.m),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02::shared_tile
