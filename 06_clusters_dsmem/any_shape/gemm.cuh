/// @file
/// Kernels for any shape, which lesson 06 leads to: blocks of a cluster share what each of them needs.
///
/// Added since 05: kClusterM blocks, one below the other, need the same tile of B, and kClusterN blocks, one
/// beside the other, the same tile of A: each loads some rows of both and multicasts them. kClusterK blocks
/// split the K steps of a tile of C, and add up their partial sums through each other's shared memory. What
/// does not fill a wave all clusters share evenly, and add up through global memory. The sizes, and which
/// part of all this is a block's, are in shape.cuh.
#pragma once
#include "06_clusters_dsmem/any_shape/shape.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/unrolled.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/grid_dependency.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06::any_shape {
using namespace ladder;

/// One thread keeps the ring full. It loads some rows of the tiles of A and B, for all blocks that share
/// them, and expects the bytes of all rows that are loaded: the others load the rest.
__device__ __forceinline__ void load_tiles(auto& smem, const MapsWithEnd& maps, const auto& walk) {
  ptx::tma_prefetch(&maps.a);
  ptx::tma_prefetch(&maps.b);
  Producer pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    ptx::wait_for_grid_before();  // That grid may still use A, B, C and the workspace. All but loads come
                                  // after loads, so only these wait: once, then it returns at once.
    for (int step = tile.first_step; step < tile.after_step; ++step) {
      // [load_step]
      const int slot = pipe_lc.producer_acquire();  // waits until all blocks that it fills have released it
      auto* const full = pipe_lc.expect_bytes(tile.bytes);
      load_parts(smem, slot, maps, tile, step, full);
      pipe_lc.producer_commit_bytes();
      // [load_step]
    }
  }
  pipe_lc.wait_until_empty();  // no block leaves while another may still reach its shared memory
}

/// Each warpgroup multiplies its 64 rows and adds up with the blocks that split K; together they hand their
/// share of the columns to the storer, kStagedN at a time.
__device__ __forceinline__ void compute_tiles(auto& smem, const auto& walk, const auto& ending) {
  const Part part(smem);
  constexpr TileShape kTile = part.kTile;
  const int my_rows = 64 * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  constexpr int kInFlight = pipe_lc.kSlots > 1 ? 1 : 0;  // one slot goes back before the next wait
  PartialSums sums(smem.inbox[warpgroup_index()], part);
  for (const auto tile : walk) {
    WgmmaCore<kTile.n> core;
    const int k_steps = tile.after_step - tile.first_step;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.template finish<kInFlight>();  // the step before this one is finished: its slot may be filled
                                          // again
      if (step >= kInFlight) release(pipe_lc, part);
    }
    core.finish();
    if (kInFlight > 0) release(pipe_lc, part);
    // [k_loop]

    const bool complete = add_up(sums, part, core.d, walk, tile, ending, smem);
    unrolled<part.kShare / part.kStagedN>([&](auto piece) {
      pipe_cs.producer_acquire();  // waits until the storer has read the piece before
      stage<part.kStagedN* decltype(piece)::value>(core.d, smem, part, tile, ending, complete);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      pipe_cs.producer_commit();
    });
  }
  sums.wait_until_read();
}

/// One thread sends what is staged to global memory.
__device__ __forceinline__ void store_tiles(auto& smem, const TensorMaps& maps, const auto& walk) {
  const Part part(smem);
  constexpr TileShape kTile = part.kTile;
  Consumer pipe_cs(smem.pipe_cs);
  for (const auto tile : walk) {
    for (int first = part.first_column; first < part.after_column; first += part.kStagedN) {
      pipe_cs.consumer_wait();
      for (int column = 0; column < part.kStagedN && is_complete(smem); column += 64)
        ptx::tma_store(&maps.c, &smem.c.panels[column / 64], tile.column * kTile.n + first + column,
                       tile.row * kTile.m);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent clusters: each walks over its share of the tiles of C. n and k are multiples of 8, and there
/// are at least kClusterK K steps.
template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ MapsWithEnd maps, const __grid_constant__ typename Shape::Walk walk,
         const __grid_constant__ Ending<Epilogue> ending) {
  auto& smem = shared_storage<SharedStorage<Shape>>();
  constexpr int kComputeThreads = Shape::kComputeThreads, kComputeRegisters = Shape::kComputeRegisters;
  constexpr int kLoaderWarp = Shape::kLoaderWarp, kStorerWarp = Shape::kStorerWarp;
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, Shape::kWarpgroups * Shape::kSharers);
    smem.pipe_cs.init(kComputeThreads, 1);
    for (auto& inbox : smem.inbox) init_inbox(inbox);
    ptx::fence_mbarrier_init();
  }
  meet<Shape>();  // no block sends before all barriers are initialised
  ptx::let_next_grid_begin();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_tiles(smem, walk, ending);
  } else {
    ptx::setmaxnreg_dec<kMoverRegisters>();
    if (warp > kStorerWarp || !ptx::elect_one()) return;
    if (warp == kLoaderWarp) load_tiles(smem, maps, walk);
    if (warp == kStorerWarp) store_tiles(smem, maps, walk);
  }
  // [roles]
}

/// As many clusters as the GPU holds at once without the SMs that it spares, or as there is work for.
template <class Shape, class Epilogue>
void launch_gemm(const Gemm& p, const Order& order, const Ending<Epilogue>& ending, cudaStream_t stream) {
  const typename Shape::Walk walk = step_walk<Shape>(gemm<Shape, Epilogue>, p, order, ending.workspace);
  ladder::launch(gemm<Shape, Epilogue>,
                 {.name = "06_any_shape",
                  .grid = dim3(walk.clusters * Shape::kBlocks),
                  .block = dim3(Shape::kThreads),
                  .shared_bytes = sizeof(SharedStorage<Shape>),
                  .cluster = dim3(Shape::kBlocks),
                  .stream = stream,
                  .begins_early = order.begins_early},
                 maps_of<Shape>(p), walk, ending);
}

}  // namespace lesson06::any_shape
