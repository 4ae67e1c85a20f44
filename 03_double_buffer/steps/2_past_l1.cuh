/// @file
/// Lesson 03, step 2: copies go past L1 where that saves work.
///
/// Added since step 1: where rows are whole sectors of 32 bytes, that is n and k are multiples of 16, copies
/// go past L1. Elsewhere they go through it, because two copies that share a sector would both fetch it from
/// L2. Which of the two kernels a shape takes is chosen in lesson.cu.
#pragma once
#include <cuda_pipeline.h>

#include "common/cuda/launch.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/cp_async.cuh"

namespace lesson03::past_l1 {
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

/// Starts to copy this thread's chunks of a tile: one cp.async each. What lies outside the matrix becomes
/// zero, by an ordinary store.
template <bool kUseL1, class Share, class Tile>
__device__ __forceinline__ void copy_async(const Share& share, Tile& tile) {
  share.for_each([&](int i, const __nv_bfloat16* source, bool inside) {
    if (inside && kUseL1)
      ptx::cp_async_ca_16(share.destination(tile, i), source);
    else if (inside)
      __pipeline_memcpy_async(share.destination(tile, i), source, sizeof(uint4));  // past L1
    else
      *share.destination(tile, i) = make_uint4(0, 0, 0, 0);
  });
}

// [load]
/// Starts to copy this thread's chunks of the next tiles of A and B.
template <bool kUseL1, class ShareA, class ShareB>
__device__ __forceinline__ void load_tiles(ShareA& a_share, ShareB& b_share, TileA& a, TileB& b) {
  copy_async<kUseL1>(a_share, a);
  copy_async<kUseL1>(b_share, b);
  a_share.next_right();
  b_share.next_down();
}
// [load]

/// Each block computes a tile of C; n and k are multiples of 8, so that a chunk is one copy.
/// While one block loads, another one may compute.
template <bool kUseL1>
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
    load_tiles<kUseL1>(a_share, b_share, smem.a, smem.b);
    __pipeline_commit();
    __pipeline_wait_prior(0);  // this thread's copies have landed

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
template <bool kUseL1>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm<kUseL1>,
                 {.name = "03_double_buffer",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson03::past_l1
