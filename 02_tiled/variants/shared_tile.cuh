/// @file
/// Lesson 02's first step: tiles in shared memory, and still one output a thread.
///
/// Added since 01: a block brings a tile of A and a tile of B to shared memory, and each of its 32 x 32
/// threads reads them from there. An element comes from global memory once for 32 products instead of once
/// for each.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02::shared_tile {
using ladder::Gemm;

constexpr int kTile = 32;  ///< all three tiles are squares; a row is as wide as a warp

struct SharedStorage {
  __nv_bfloat16 a[kTile][kTile];
  __nv_bfloat16 b[kTile][kTile];
};

/// The element of a row-major matrix, or zero outside it: zeros add nothing to a sum.
__device__ __forceinline__ __nv_bfloat16 element(const __nv_bfloat16* matrix, int rows, int columns, int row,
                                                 int column) {
  const bool inside = row < rows && column < columns;
  return inside ? matrix[static_cast<size_t>(row) * columns + column] : __float2bfloat16(0);
}

/// Each block computes one tile of C, each thread one element of it; any m, n, k.
__global__ void __launch_bounds__(kTile* kTile) gemm(const Gemm p) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const auto tile =
      ladder::grouped_tile(blockIdx.x, ladder::tiles_over(p.m, kTile), ladder::tiles_over(p.n, kTile));
  const int y = threadIdx.y, x = threadIdx.x;
  const int row = tile.row * kTile + y, column = tile.column * kTile + x;

  float sum = 0;
  for (int k = 0; k < p.k; k += kTile) {
    smem.a[y][x] = element(p.a, p.m, p.k, row, k + x);
    smem.b[y][x] = element(p.b, p.k, p.n, k + y, column);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += __bfloat162float(smem.a[y][i]) * __bfloat162float(smem.b[i][x]);
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  if (row < p.m && column < p.n) p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sum);
}

/// One block for each tile of C.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const int tiles = ladder::tiles_over(p.m, kTile) * ladder::tiles_over(p.n, kTile);
  ladder::launch(gemm,
                 {.name = "02_tiled, shared tile",
                  .grid = dim3(tiles),
                  .block = dim3(kTile, kTile),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02::shared_tile
