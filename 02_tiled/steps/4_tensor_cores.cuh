/// @file
/// Lesson 02, step 4: tensor cores multiply a tile of A by a tile of B in shared memory.
///
/// Added since step 3: tensor cores multiply. They read both tiles from shared memory, in one of the layouts
/// that a descriptor can name. We take the 128-byte swizzle: a row of a panel has 128 bytes, 64 elements, so
/// a step covers 64 of k instead of 32.
#pragma once
#include "02_tiled/chunk.cuh"
#include "common/cuda/launch.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02::tensor_cores {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kThreads = kWarpgroups * kWarpgroup;

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

struct SharedStorage {
  TileA a;
  TileB b;
};

/// Each block computes a tile of C; n and k are multiples of 8, so that a chunk is one load.
/// While one block loads, another one may compute.
__global__ void __launch_bounds__(kThreads, 2) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const int first_row = blockIdx.y * kTile.m, first_column = blockIdx.x * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  Core core;
  const int row_offset = Core::kRows * warpgroup_index();

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    const int k = step * kTile.k;
#pragma unroll
    for (unsigned i = 0; i < kTile.m * kTile.k; i += kChunk * kThreads) {
      const unsigned at = i + kChunk * threadIdx.x;
      chunk_at(smem.a.at(at / kTile.k, at % kTile.k)) =
          chunk(p.a, p.m, p.k, first_row + at / kTile.k, k + at % kTile.k);
    }
#pragma unroll
    for (unsigned i = 0; i < kTile.k * kTile.n; i += kChunk * kThreads) {
      const unsigned at = i + kChunk * threadIdx.x;
      chunk_at(smem.b.at(at / kTile.n, at % kTile.n)) =
          chunk(p.b, p.k, p.n, k + at / kTile.n, first_column + at % kTile.n);
    }
    core.publish();   // to the async proxy, by which wgmma reads
    __syncthreads();  // the tiles are complete

    core.start(smem.a, row_offset, smem.b, step == 0);  // the first product overwrites the sums
    core.finish();
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
  store_sums<Core>(core.d, p.c, first_row + row_offset, first_column, p.m, p.n);
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

}  // namespace lesson02::tensor_cores
