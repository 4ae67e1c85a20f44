/// @file
/// Kernels for any shape, which lesson 06 leads to: tile and cluster are parameters.
///
/// Added since 06: blocks beside each other share tiles of A as well, and each loads some rows for all of
/// them. A product stays in flight while the next is started. Stream-K splits the tiles that would not fill a
/// wave among all clusters. With programmatic dependent launch a kernel sets itself up while the kernel
/// before it still runs. With swapped operands C is computed transposed, and tiles have rows in eights.
/// shape.cuh says what each block of a cluster loads, staging.cuh how it stores.
#pragma once
#include "06_clusters_dsmem/any_shape/shape.cuh"
#include "06_clusters_dsmem/any_shape/staging.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/grid_dependency.cuh"
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06::any_shape {
using namespace ladder;

/// The loader: one thread loads some rows of the tiles of A and B for all blocks that receive
/// them, and expects the bytes of all rows: other blocks load the rest.
template <class Shape>
__device__ __forceinline__ void load_tiles(SharedStorage<Shape>& smem, const Maps& maps,
                                           const typename Shape::Walk& walk) {
  ptx::tma_prefetch(&maps.a);
  ptx::tma_prefetch(&maps.b);
  Producer pipe_lc(smem.pipe_lc);
  for (const TileSteps tile : walk) {
    // The grid before may still use A, B, C and the workspace. Everything else that touches them comes after
    // loads, so waiting here is enough. From the second tile on this returns at once.
    ptx::griddepcontrol_wait();
    for (int step = tile.first_step; step < tile.after_step; ++step) {
      // [load_step]
      const int slot = pipe_lc.producer_acquire();  // waits until all blocks that it fills have released it
      ptx::Mbarrier* const full = pipe_lc.expect_bytes(tile.bytes);
      load_step(smem, slot, maps, tile, step, full);
      pipe_lc.producer_commit_bytes();
      // [load_step]
    }
  }
  pipe_lc.wait_until_empty();  // no block exits while another may still reach its shared memory
}

/// Each warpgroup multiplies its 64 rows and adds up the partial sums of its block's columns; together they
/// hand these columns to the storer, kStagedN at a time.
template <class Shape, class Epilogue>
__device__ __forceinline__ void compute_tiles(SharedStorage<Shape>& smem, const typename Shape::Walk& walk,
                                              const Ending<Epilogue>& ending) {
  const Block<Shape> block;
  const int my_rows = 64 * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  PartialSums sums(smem.inbox[warpgroup_index()], block);
  for (const TileSteps tile : walk) {
    typename Shape::Core core;
    const int k_steps = tile.after_step - tile.first_step;
    // A warpgroup below the last row of C leaves the tensor cores to the others after one step, which defines
    // its sums.
    const bool has_rows = tile.row * Shape::kTile.m + my_rows < walk.rows;
    const int products = has_rows ? k_steps : 1;
    // [k_loop]
    for (int step = 0; step < products; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.finish_all_but_last();  // the step before this one is finished: its slot may be filled again
      if (step > 0) release(pipe_lc, block);
    }
    core.finish();
    release(pipe_lc, block);
    // [k_loop]
    for (int step = products; step < k_steps; ++step) {
      pipe_lc.consumer_wait();
      // No wgmma holds the warps together here: all must have passed this wait before one thread releases.
      ptx::named_barrier_sync(kFirstWarpgroupBarrier + warpgroup_index(), kWarpgroup);
      release(pipe_lc, block);
    }

    const bool complete = add_up(sums, block, core.d, walk, tile, ending);
#pragma unroll  // registers have no addresses
    for (int column = 0; column < Shape::kOwnN; column += Shape::kStagedN) {
      pipe_cs.producer_acquire();  // waits until the storer has read the piece before
      stage(core.d, column, smem, block, tile, ending, complete);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      pipe_cs.producer_commit();
    }
  }
  sums.wait_until_read();
}

/// The storer: one thread sends what is staged to global memory.
template <class Shape>
__device__ __forceinline__ void store_tiles(SharedStorage<Shape>& smem, const Maps& maps,
                                            const typename Shape::Walk& walk) {
  const Block<Shape> block;
  Consumer pipe_cs(smem.pipe_cs);
  for (const TileSteps tile : walk) {
    for (int first = 0; first < Shape::kOwnN; first += Shape::kStagedN) {
      pipe_cs.consumer_wait();
      store_piece(smem, block, maps, tile, first, walk);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent clusters: each walks over tiles of C. n and k are multiples of 8, and there are at least
/// kClusterK K steps.
template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ Maps maps, const __grid_constant__ typename Shape::Walk walk,
         const __grid_constant__ Ending<Epilogue> ending) {
  auto& smem = shared_storage<SharedStorage<Shape>>();
  constexpr int kComputeThreads = Shape::kComputeThreads, kComputeRegisters = Shape::kComputeRegisters;
  constexpr int kLoaderWarp = Shape::kLoaderWarp, kStorerWarp = Shape::kStorerWarp;
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, Shape::kWarpgroups * Shape::kFillers);
    smem.pipe_cs.init(kComputeThreads, 1);
    for (auto& inbox : smem.inbox) init_inbox(inbox);
    ptx::fence_mbarrier_init();
  }
  sync_cluster<Shape>();  // no block sends before all barriers are initialised
  ptx::griddepcontrol_launch_dependents();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_tiles(smem, walk, ending);
  } else {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_dec<Shape::kMoverRegisters>();
    if (warp > kStorerWarp || !ptx::elect_one()) return;
    if (warp == kLoaderWarp) load_tiles(smem, maps, walk);
    if (warp == kStorerWarp) store_tiles(smem, maps, walk);
  }
  // [roles]
}

}  // namespace lesson06::any_shape
