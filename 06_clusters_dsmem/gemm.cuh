/// @file
/// Lesson 06: blocks of a cluster share.
///
/// Added since 05: kClusterM blocks, one below the other, need the same tile of B: each loads a part of it
/// and multicasts that part to all. kClusterK blocks split the K steps of one tile of C, and add up their
/// partial sums through each other's shared memory. Tile, begin of a launch and way along K are choices now.
#pragma once
#include "06_clusters_dsmem/plan.hpp"
#include "06_clusters_dsmem/shape.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/residency.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/unrolled.cuh"
#include "common/host/problem/lesson.hpp"
#include "common/ptx/grid_dependency.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06 {
using ladder::Gemm;

struct TensorMaps {
  CUtensorMap a, b, c;
};

/// One thread keeps the ring full. It waits until its slot is free in all blocks that it multicasts to, and
/// expects what all of them send here.
/// @param turns every other tile is walked from its last K step to its first, which are still in the L2 cache
template <class Shape>
__device__ __forceinline__ void load_tiles(SharedStorage<Shape>& smem, const TensorMaps& maps,
                                           const ladder::TileWalk& walk, const Part<Shape>& part,
                                           bool turns) {
  constexpr int kPanels = Shape::kTile.n / 64 / Shape::kClusterM;
  const auto sharers = static_cast<uint16_t>(((1u << Shape::kClusterM) - 1) << part.rank(0, part.k));
  ptx::tma_prefetch(&maps.a);
  ptx::tma_prefetch(&maps.b);
  ptx::wait_for_grid_before();  // which may have written A and B, or may still read what C will be
  ladder::Producer<Shape::kSlots> pipe(smem.pipe_lc);
  bool backwards = false;
  for (int index = walk.first(); index < walk.end(); index += walk.step(), backwards ^= turns) {
    const auto tile = walk.at(index);
    for (int step = part.first_step; step < part.after_step; ++step) {
      const int k = (backwards ? part.first_step + part.after_step - 1 - step : step) * Shape::kTile.k;
      const int slot = pipe.producer_acquire();
      pipe.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
      ptx::tma_load(&smem.a[slot], &maps.a, k, part.row(tile), pipe.barrier());
#pragma unroll
      for (int i = 0; i < kPanels; ++i) {
        const int panel = part.m * kPanels + i, column = part.column(tile) + 64 * panel;
        if constexpr (Shape::kClusterM == 1)
          ptx::tma_load(&smem.b[slot].panels[panel], &maps.b, column, k, pipe.barrier());
        else
          ptx::tma_load_multicast(&smem.b[slot].panels[panel], &maps.b, column, k, pipe.barrier(), sharers);
      }
      pipe.producer_commit_bytes();
    }
  }
}

// [release]
/// A warpgroup that has read a slot says so in all blocks that fill it: one thread for each.
template <class Shape>
__device__ __forceinline__ void release(ladder::ClusterConsumer<Shape::kSlots>& pipe,
                                        const Part<Shape>& part) {
  const int thread = threadIdx.x % ladder::kWarpgroup;
  if constexpr (Shape::kClusterM == 1)
    pipe.consumer_release(thread == 0);
  else
    pipe.consumer_release_in(part.rank(thread, part.k), thread < Shape::kClusterM);
}
// [release]

/// Each warpgroup multiplies its rows, adds up with the blocks that split K, and hands its share of the
/// columns to its storer, panel by panel.
template <class Shape>
__device__ __forceinline__ void compute_tiles(SharedStorage<Shape>& smem, const ladder::TileWalk& walk,
                                              const Part<Shape>& part) {
  const int me = ladder::warpgroup_index();
  ladder::ClusterConsumer<Shape::kSlots> loaded(smem.pipe_lc);
  ladder::Producer<Shape::kStagedSlots> finished(smem.pipe_cs[me]);
  uint32_t parity = 0;
  for (int index = walk.first(); index < walk.end(); index += walk.step(), parity ^= 1) {
    typename Shape::Core core[Shape::kFragments];
    for (int step = part.first_step; step < part.after_step; ++step) {
      const int slot = loaded.consumer_wait();
#pragma unroll
      for (int f = 0; f < Shape::kFragments; ++f)
        core[f].start(smem.a[slot], Shape::kRows * me + 64 * f, smem.b[slot], step == part.first_step);
      core[0].template finish<Shape::kFragments>();  // the step before this one: its slot may be filled again
      if (step > part.first_step) release(loaded, part);
    }
#pragma unroll
    for (auto& fragment : core) fragment.template finish<0>();
    release(loaded, part);

    if constexpr (Shape::kClusterK > 1)
      add_partial_sums(
          smem.inbox[me], core[0].d, part.k, [&](int k) { return part.rank(part.m, k); }, parity);
#pragma unroll
    for (auto& fragment : core)
      ladder::unrolled<Shape::kShare / 64>([&](auto panel) {
        const int slot = finished.producer_acquire();  // waits until the storer has read what was there
        ladder::stage_fragment<64 * decltype(panel)::value>(fragment.d, smem.c[me][slot], 0);
        ptx::fence_proxy_async();  // TMA reads what these threads have stored
        finished.producer_commit();
      });
  }
}

/// One thread sends what warpgroup `whose` has staged to global memory.
template <class Shape>
__device__ __forceinline__ void store_tiles(SharedStorage<Shape>& smem, const TensorMaps& maps,
                                            const ladder::TileWalk& walk, const Part<Shape>& part,
                                            int whose) {
  ladder::Consumer<Shape::kStagedSlots> pipe(smem.pipe_cs[whose]);
  for (int index = walk.first(); index < walk.end(); index += walk.step()) {
    const int first_row = part.row(walk.at(index)) + Shape::kRows * whose;
    const int first_column = part.column(walk.at(index)) + Shape::kShare * part.k;
    for (int row = 0; row < Shape::kRows; row += 64)
      for (int column = 0; column < Shape::kShare; column += 64) {
        const int slot = pipe.consumer_wait();
        ptx::tma_store(&maps.c, &smem.c[whose][slot], first_column + column, first_row + row);
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
        pipe.consumer_release();
      }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent clusters: each walks over its share of the tiles of C. n and k are multiples of 8, and there
/// are at least kClusterK K steps.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ TensorMaps maps, const ladder::TileWalk walk, const int k_steps,
         const bool turns) {
  auto& smem = ladder::shared_storage<SharedStorage<Shape>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, Shape::kWarpgroups * Shape::kClusterM);
    for (int i = 0; i < Shape::kWarpgroups; ++i) {
      smem.pipe_cs[i].init(ladder::kWarpgroup, 1);
      init_inbox(smem.inbox[i]);
    }
    ptx::fence_mbarrier_init();
  }
  if constexpr (Shape::kBlocks > 1)
    ptx::cluster_sync();  // no block sends before the barriers of all are there
  else
    __syncthreads();
  ptx::let_next_grid_begin();

  const Part<Shape> part(k_steps);
  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < Shape::kLoaderWarp) {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_inc<Shape::kComputeRegisters>();
    compute_tiles(smem, walk, part);
  } else {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_dec<Shape::kMoverRegisters>();
    // Who has no role leaves: waiting for the others until the end would cost power, hence speed.
    if (ladder::lane_index() > 0 || warp >= Shape::kStorerWarp + Shape::kWarpgroups) return;
    if (warp == Shape::kLoaderWarp)
      load_tiles(smem, maps, walk, part, turns);
    else
      store_tiles(smem, maps, walk, part, warp - Shape::kStorerWarp);
  }
  // No block leaves while another may still reach its shared memory.
  if constexpr (Shape::kBlocks > 1) ptx::cluster_sync();
}

/// As many clusters as the GPU holds at one time beside what it spares, or as there are tiles for.
template <class Shape>
void launch_gemm(const Gemm& p, const Order& order, cudaStream_t stream) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  const TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k),
                           ladder::make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           ladder::make_tensor_map(p.c, p.m, p.n, 64, 64)};
  const ladder::TileWalk walk{ladder::tiles_over(p.m, kTile.m * Shape::kClusterM),
                              ladder::tiles_over(p.n, kTile.n), order.group, Shape::kBlocks};
  const int tiles = walk.tile_rows * walk.tile_columns;
  const auto kernel = gemm<Shape>;
  const int resident = clusters_beside(
      order.spare_sms, Shape::kBlocks,
      ladder::resident_clusters(kernel, Shape::kThreads, sizeof(SharedStorage<Shape>), Shape::kBlocks));
  ladder::launch(kernel,
                 {.name = "06_clusters_dsmem",
                  .grid = dim3((tiles < resident ? tiles : resident) * Shape::kBlocks),
                  .block = dim3(Shape::kThreads),
                  .shared_bytes = sizeof(SharedStorage<Shape>),
                  .cluster = dim3(Shape::kBlocks),
                  .stream = stream,
                  .begins_early = order.begins_early},
                 maps, walk, ladder::tiles_over(p.k, kTile.k), order.turns);
}

/// The lesson, its knobs and its rungs.
const ladder::Lesson& lesson();

}  // namespace lesson06
