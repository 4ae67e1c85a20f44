/// @file
/// Lesson 02: a block computes a tile of C from tiles of A and B in shared memory.
///
/// Added since 01: every element that a block loads is used 128 times instead of once, and the products are
/// done by tensor cores (or, with --core fma, by CUDA cores: tiling and tensor cores are two gains). Loading
/// and computing take turns, with a barrier between them.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02 {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
template <class Core>
constexpr int kThreads = kTile.m* kWarpgroup / Core::kRows;  ///< a warpgroup multiplies kRows rows of A

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

struct SharedStorage {
  TileA a;
  TileB b;
};

/// Each block computes one tile of C. kAligned: n and k are multiples of 8. While one block loads, another
/// one may compute, if the registers of both fit.
template <class Core, bool kAligned>
__global__ void __launch_bounds__(kThreads<Core>, kAligned ? Core::kBlocksPerSm : 1) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  TileShare<TileA, kThreads<Core>> a_share(p.a, p.m, p.k, first_row, 0);
  TileShare<TileB, kThreads<Core>> b_share(p.b, p.k, p.n, 0, first_column);
  Core core;
  const int my_rows = Core::kRows * warpgroup_index();

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    uint4 a[a_share.kChunks], b[b_share.kChunks];  // this thread's part of both tiles
    a_share.template load<kAligned>(a);
    b_share.template load<kAligned>(b);  // all loads are under way before the first store waits for one
    a_share.store(a, smem.a);
    b_share.store(b, smem.b);
    a_share.next_right();
    b_share.next_down();

    core.publish();                                  // wgmma may miss ordinary stores without it
    __syncthreads();                                 // the tiles are complete
    core.start(smem.a, my_rows, smem.b, step == 0);  // the first product overwrites the sums
    core.finish();
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
  store_sums<Core>(core.d, p.c, first_row + my_rows, first_column, p.m, p.n);
}

/// One block for each tile of C.
template <class Core, bool kAligned>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm<Core, kAligned>,
                 {.name = "02_tiled",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads<Core>),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02
