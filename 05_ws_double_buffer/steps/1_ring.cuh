/// @file
/// Lesson 05, step 1: a ring of slots between the roles.
///
/// Added since 04: kSlots slots instead of one. While compute reads one slot, the loader fills the others, up
/// to kSlots steps ahead. The tile, the roles and the two pipelines are the same.
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
#include "common/ptx/tma.cuh"

namespace lesson05::ring {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + 2 * kWarp;

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

/// The ring: slot s holds steps s, s + kSlots, s + 2 * kSlots, ...
template <int kSlots>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
  SwizzledTile<kTile.m, kTile.n> c;
  Pipeline<kSlots> pipe_lc;  ///< from the loader to compute
  Pipeline<1> pipe_cs;       ///< from compute to the storer
};

// [load_tiles]
/// The loader: one thread keeps the ring full.
template <class Smem>
__device__ __forceinline__ void load_tiles(Smem& smem, const TensorMaps& maps, TileWalk walk, int k_steps) {
  Producer pipe_lc(smem.pipe_lc);
  for (const TileIndex tile : walk) {
    const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until both compute warpgroups have released it
      ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));
      const int k = step * kTile.k;
      ptx::tma_load(&smem.a[slot], &maps.a, k, first_row, full);
      for (int panel = 0; panel < TileB::kPanels; ++panel)  // TMA moves a panel at a time
        ptx::tma_load(&smem.b[slot].panels[panel], &maps.b, first_column + panel * kPanelColumns, k, full);
      pipe_lc.producer_commit_bytes();
    }
  }
}
// [load_tiles]

/// Each warpgroup multiplies its rows; together they hand the tile to the storer.
template <class Smem>
__device__ __forceinline__ void compute_tiles(Smem& smem, TileWalk walk, int k_steps) {
  const int row_offset = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  for (auto tile = walk.begin(); tile != walk.end(); ++tile) {  // compute only counts the tiles
    Core core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], row_offset, smem.b[slot], step == 0);
      core.finish();
      pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);  // one arrives for four warps, as in CUTLASS
    }
    // [k_loop]
    pipe_cs.producer_acquire();  // waits until the storer has read what was staged before
    stage_fragment(core.d, 0, smem.c, row_offset);
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    __syncwarp();              // all lanes have, so one arrives for them
    pipe_cs.producer_commit(threadIdx.x % kWarp == 0);
  }
}

/// The storer: one thread sends what is staged to global memory.
template <class Smem>
__device__ __forceinline__ void store_tiles(Smem& smem, const TensorMaps& maps, TileWalk walk) {
  Consumer pipe_cs(smem.pipe_cs);
  for (const TileIndex tile : walk) {
    const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
    pipe_cs.consumer_wait();
    for (int panel = 0; panel < smem.c.kPanels; ++panel)
      ptx::tma_store(&maps.c, &smem.c.panels[panel], first_column + panel * kPanelColumns, first_row);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();  // TMA has read what was staged
    pipe_cs.consumer_release();
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks: each walks over its share of the tiles of C.
/// Up to two slots, two blocks share a multiprocessor: while one loads, the other one may compute.
template <int kSlots>
__global__ void __launch_bounds__(kThreads, 2) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n)};
  const int k_steps = tiles_over(p.k, kTile.k);

  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);  // how many arrivals fill a slot, and how many empty it
    smem.pipe_cs.init(kLoaderWarp, 1);  // each compute warp, 0 to kLoaderWarp - 1, arrives for its part
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    compute_tiles(smem, walk, k_steps);
  } else if (ptx::elect_one()) {
    if (warp == kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
    if (warp == kStorerWarp) store_tiles(smem, maps, walk);
  }
  // [roles]
}

/// One block for each tile of C, but no more blocks than the GPU holds at one time.
template <int kSlots>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, kPanelColumns),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, kPanelColumns),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, kPanelColumns)};
  const int tiles = tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n);
  ladder::launch(gemm<kSlots>,
                 {.name = "05_ws_double_buffer",
                  .grid = persistent_grid<SharedStorage<kSlots>>(gemm<kSlots>, kThreads, tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlots>),
                  .stream = stream},
                 maps, p);
}

}  // namespace lesson05::ring
