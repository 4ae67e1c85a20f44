/// @file
/// Lesson 03: while the tensor cores work on one tile, the next one is already being copied.
///
/// Added since step 2: a ring of slots instead of one pair of tiles. Every warp copies and every warp
/// computes. A thread waits for a tile only when it is about to multiply it, and the barrier before it says
/// two things: this tile is complete, and the slot of the one before is free.
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

namespace lesson03 {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kThreads = kWarpgroups * kWarpgroup;

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

/// The ring. Slot s holds tiles s, s + kSlots, s + 2 * kSlots, ... along k.
template <int kSlots>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
};

/// Starts to copy this thread's chunks of a tile: one cp.async each. What lies outside the matrix becomes
/// zero, by an ordinary store.
template <bool kUseL1, class Share, class Tile>
__device__ __forceinline__ void copy_async(const Share& share, Tile& tile) {
  share.for_each([&](int i, const __nv_bfloat16* source, bool inside) {
    if (inside && kUseL1)
      ptx::cp_async_ca_16(share.destination(tile, i), source);
    else if (inside)
      __pipeline_memcpy_async(share.destination(tile, i), source, sizeof(uint4));  // .cg: past L1
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
/// Up to three slots, two blocks share a multiprocessor: while one loads, the other one may compute.
template <int kSlots, bool kUseL1>
__global__ void __launch_bounds__(kThreads, 2) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  TileShare<TileA, kThreads> a_share(p.a, p.m, p.k, first_row, 0);
  TileShare<TileB, kThreads> b_share(p.b, p.k, p.n, 0, first_column);
  Core core;
  const int row_offset = Core::kRows * warpgroup_index();

  // [k_loop]
  constexpr int kAhead = kSlots - 1;  // tiles in flight while one is computed
  static_assert(kAhead > 0, "with one slot nothing overlaps: that is step 2");
  for (int step = 0; step < kAhead; ++step) {
    if (step < k_steps) load_tiles<kUseL1>(a_share, b_share, smem.a[step], smem.b[step]);
    __pipeline_commit();
  }
  for (int step = 0, slot = 0; step < k_steps; ++step, slot = slot + 1 == kSlots ? 0 : slot + 1) {
    __pipeline_wait_prior(kAhead - 1);  // this thread's copies of this tile have landed

    core.publish();   // to the async proxy, by which wgmma reads
    __syncthreads();  // the tile is complete, and all have read the one before: its slot is free

    const int free_slot = slot == 0 ? kSlots - 1 : slot - 1;
    if (step + kAhead < k_steps) load_tiles<kUseL1>(a_share, b_share, smem.a[free_slot], smem.b[free_slot]);
    __pipeline_commit();  // empty after the last tile, because wait_prior counts batches
    core.start(smem.a[slot], row_offset, smem.b[slot], step == 0);  // the first product overwrites the sums
    core.finish();
  }
  // [k_loop]
  store_sums<Core>(core.d, p.c, first_row + row_offset, first_column, p.m, p.n);
}

/// One block for each tile of C.
template <int kSlots, bool kUseL1>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm<kSlots, kUseL1>,
                 {.name = "03_double_buffer",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlots>),
                  .stream = stream},
                 p);
}

}  // namespace lesson03
