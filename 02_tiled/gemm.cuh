/// @file
/// Lesson 02: blocks that run together compute neighbouring tiles.
///
/// Added since step 5: blocks are numbered in groups 16 tiles high, column by column, instead of row by row.
/// Blocks that run at the same time then need fewer different tiles, and more of their loads find one in L2.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02 {
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
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
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

/// One block for each tile of C.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm,
                 {.name = "02_tiled",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02
