/// @file
/// Lesson 05: a tile twice as wide, so that every byte of A in shared memory is used twice as often.
///
/// Added since step 1: the tile of C is 128 x 256, and one block has the multiprocessor for itself. Compute
/// holds twice as many accumulators, and the warpgroup that only moves data gives it registers (setmaxnreg).
/// The ring fills shared memory: compute hands over its tile of C one panel at a time.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson05 {
using namespace ladder;

constexpr TileShape kTile{128, 256, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + kWarpgroup;
/// Of 64 K registers each of 384 threads gets 168: enough for 128 accumulators and little else. Two thirds of
/// the threads take what the others give: 256 * 232 + 128 * 40 = 384 * 168.
constexpr int kMoverRegisters = 40, kComputeRegisters = 232;
constexpr int kStagedN = 64;  ///< columns of C that are handed over at a time: one panel

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

/// The ring: slot s holds steps s, s + kSlots, s + 2 * kSlots, ...
template <int kSlots>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
  SwizzledTile<kTile.m, kStagedN> c;
  Pipeline<kSlots> pipe_lc;  ///< from the loader to compute
  Pipeline<1> pipe_cs;       ///< from compute to the storer
};

// [load_tiles]
/// One thread keeps the ring full.
template <int kSlots>
__device__ __forceinline__ void load_tiles(SharedStorage<kSlots>& smem, const TensorMaps& maps,
                                           const TileWalk& walk, int k_steps) {
  Producer pipe_lc(smem.pipe_lc);
  for (const TileIndex tile : walk) {
    const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until both compute warpgroups have released it
      ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));
      ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, first_row, full);
      for (int column = 0; column < kTile.n; column += 64)  // TMA moves panels of 64 columns
        ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, first_column + column, step * kTile.k,
                      full);
      pipe_lc.producer_commit_bytes();
    }
  }
}
// [load_tiles]

/// Each warpgroup multiplies its rows; together they hand finished tiles to the storer.
template <int kSlots>
__device__ __forceinline__ void compute_tiles(SharedStorage<kSlots>& smem, const TileWalk& walk,
                                              int k_steps) {
  const int my_rows = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  for ([[maybe_unused]] const TileIndex tile : walk) {
    Core core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.finish();
      pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);  // one arrival: all four warps have read it
    }
    // [k_loop]
#pragma unroll  // registers have no addresses
    for (int column = 0; column < kTile.n; column += kStagedN) {
      pipe_cs.producer_acquire();  // waits until the storer has read the piece before
      stage_fragment(core.d, column, smem.c, my_rows);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      pipe_cs.producer_commit();
    }
  }
}

/// One thread sends what is staged to global memory.
template <int kSlots>
__device__ __forceinline__ void store_tiles(SharedStorage<kSlots>& smem, const TensorMaps& maps,
                                            const TileWalk& walk) {
  Consumer pipe_cs(smem.pipe_cs);
  for (const TileIndex tile : walk) {
    for (int column = 0; column < kTile.n; column += kStagedN) {
      pipe_cs.consumer_wait();
      ptx::tma_store(&maps.c, &smem.c, tile.column * kTile.n + column, tile.row * kTile.m);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();  // TMA has read what was staged
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8.
template <int kSlots>
__global__ void __launch_bounds__(kThreads, 1) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n)};
  const int k_steps = tiles_over(p.k, kTile.k);

  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);      // how many arrivals fill a slot, and how many empty it
    smem.pipe_cs.init(kComputeThreads, 1);  // each compute thread writes a part, so each arrives
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_tiles(smem, walk, k_steps);
  } else {
    ptx::setmaxnreg_dec<kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
      if (warp == kStorerWarp) store_tiles(smem, maps, walk);
    }
  }
  // [roles]
}

/// One block for each tile of C, but no more blocks than the GPU holds at one time.
template <int kSlots>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, 64),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, 64)};
  const int tiles = tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n);
  ladder::launch(gemm<kSlots>,
                 {.name = "05_ws_double_buffer",
                  .grid = persistent_grid<SharedStorage<kSlots>>(gemm<kSlots>, kThreads, tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlots>),
                  .stream = stream},
                 maps, p);
}

}  // namespace lesson05
