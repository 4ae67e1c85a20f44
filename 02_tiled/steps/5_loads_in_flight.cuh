/// @file
/// Lesson 02, step 5: all loads of a thread are in flight at once.
///
/// Added since step 4: a thread loads its chunks of both tiles to registers before it stores the first one.
/// A TileShare keeps the address of its first chunk and moves it from tile to tile. It tests once whether the
/// whole tile lies inside the matrix: a test for each chunk would keep the next load waiting.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02::loads_in_flight {
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

  TileShare<TileA, kThreads> a_share(p.a, p.m, p.k, first_row, 0);
  TileShare<TileB, kThreads> b_share(p.b, p.k, p.n, 0, first_column);
  Core core;
  const int row_offset = Core::kRows * warpgroup_index();

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    uint4 a_chunks[a_share.kChunks], b_chunks[b_share.kChunks];  // this thread's part of both tiles
    a_share.load(a_chunks);
    b_share.load(b_chunks);  // all loads are under way before the first store
    a_share.store(a_chunks, smem.a);
    b_share.store(b_chunks, smem.b);
    a_share.next_right();
    b_share.next_down();

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

}  // namespace lesson02::loads_in_flight
