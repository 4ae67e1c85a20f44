/// @file
/// Lesson 05 with other ratios of roles, and with an epilogue that finishes C while it is still in registers.
/// Each compute warpgroup has a storer and a staging tile of its own, for half of its columns.
#pragma once
#include "05_ws_double_buffer/gemm.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/device/fused_epilogue.cuh"
#include "common/ptx/elect.cuh"

namespace lesson05::ratios {

constexpr size_t kMaxSharedBytes = 227 * 1024;  ///< of a block, on Hopper

/// What is chosen at compile time: how many warpgroups compute for one that moves tiles, and slots.
template <int kComputeWarpgroups, int kRingSlots>
struct Shape {
  static constexpr int kWarpgroups = kComputeWarpgroups;  ///< each multiplies 64 rows of A
  static constexpr int kSlots = kRingSlots;
  static constexpr int kThreads = (kWarpgroups + 1) * ladder::kWarpgroup;
  /// Warps of the movers' warpgroup: the loader, and a storer for each warpgroup that computes.
  static constexpr int kLoaderWarp = kWarpgroups * ladder::kWarpsPerWarpgroup, kStorerWarp = kLoaderWarp + 1;
  /// The 64 K registers of an SM are 255 for each of 256 threads, 168 for each of 384, 128 for each of 512:
  /// too few for the 128 accumulators of 64 x 256, so three warpgroups compute a narrower tile.
  static constexpr ladder::TileShape kTile{64 * kWarpgroups, kWarpgroups < 3 ? 256 : 128, 64};
  static constexpr bool kMovesRegisters = kWarpgroups == 2;
  static constexpr int kMoverRegisters = 40, kComputeRegisters = 232;
  /// Half a tile at a time is staged: that leaves room for one more slot.
  static constexpr int kStagedColumns = kTile.n / 2;

  using Core = ladder::WgmmaCore<kTile.n>;
  using TileA = ladder::SwizzledTile<kTile.m, kTile.k>;
  using TileB = ladder::SwizzledTile<kTile.k, kTile.n>;
  using HalfC = ladder::SwizzledTile<64, kStagedColumns>;
};

/// The ring, and a staging tile with its pipeline for each compute warpgroup.
template <class Shape>
struct SharedStorage {
  typename Shape::TileA a[Shape::kSlots];
  typename Shape::TileB b[Shape::kSlots];
  typename Shape::HalfC c[Shape::kWarpgroups];
  ladder::Pipeline<Shape::kSlots> pipe_lc;
  ladder::Pipeline<1> pipe_cs[Shape::kWarpgroups];
};

/// One thread keeps the ring full: it runs up to kSlots tiles ahead of the tensor cores.
template <class Shape>
__device__ __forceinline__ void load_tiles(SharedStorage<Shape>& smem, const ladder::TensorMaps& maps,
                                           const ladder::TileWalk& walk, int k_steps) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  ladder::Producer<Shape::kSlots> pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until all compute warpgroups have released it
      pipe_lc.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
      ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, tile.row * kTile.m, pipe_lc.full_barrier());
#pragma unroll
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, tile.column * kTile.n + column,
                      step * kTile.k, pipe_lc.full_barrier());
      pipe_lc.producer_commit_bytes();
    }
  }
}

/// Each warpgroup multiplies its 64 rows and hands finished tiles to its storer, half by half.
template <class Shape, class Epilogue>
__device__ __forceinline__ void compute_tiles(SharedStorage<Shape>& smem, const ladder::TileWalk& walk,
                                              int k_steps, const Epilogue& epilogue) {
  const int me = ladder::warpgroup_index(), my_rows = 64 * me;
  ladder::Consumer<Shape::kSlots> pipe_lc(smem.pipe_lc);
  ladder::Producer<1> pipe_cs(smem.pipe_cs[me]);
  const bool elected = threadIdx.x % ladder::kWarpgroup == 0;
  for (const auto tile : walk) {
    typename Shape::Core core;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.finish_all_but_last();  // the step before this one is finished: its slot may be filled again
      if (step > 0) pipe_lc.consumer_release(elected);
    }
    core.finish();
    pipe_lc.consumer_release(elected);

    const int first_column = tile.column * Shape::kTile.n;
    pipe_cs.producer_acquire();  // waits until the storer has read what was staged before
    ladder::stage_fragment(core.d, 0, smem.c[me], 0, epilogue, first_column);
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    pipe_cs.producer_commit();
    pipe_cs.producer_acquire();
    ladder::stage_fragment(core.d, Shape::kStagedColumns, smem.c[me], 0, epilogue, first_column);
    ptx::fence_proxy_async();
    pipe_cs.producer_commit();
  }
}

/// One thread sends what warpgroup `whose` has staged to global memory.
template <class Shape>
__device__ __forceinline__ void store_tiles(SharedStorage<Shape>& smem, const ladder::TensorMaps& maps,
                                            const ladder::TileWalk& walk, int whose) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  ladder::Consumer<1> pipe_cs(smem.pipe_cs[whose]);
  for (const auto tile : walk) {
    for (int half = 0; half < kTile.n; half += Shape::kStagedColumns) {
      pipe_cs.consumer_wait();
#pragma unroll
      for (int column = 0; column < Shape::kStagedColumns; column += 64)
        ptx::tma_store(&maps.c, &smem.c[whose].panels[column / 64], tile.column * kTile.n + half + column,
                       tile.row * kTile.m + 64 * whose);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8.
template <class Shape, class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ ladder::TensorMaps maps, const ladder::TileWalk walk, const int k_steps,
         const Epilogue epilogue) {
  auto& smem = ladder::shared_storage<SharedStorage<Shape>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, Shape::kWarpgroups);
    for (int i = 0; i < Shape::kWarpgroups; ++i) smem.pipe_cs[i].init(ladder::kWarpgroup, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < Shape::kLoaderWarp) {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_inc<Shape::kComputeRegisters>();
    compute_tiles(smem, walk, k_steps, epilogue);
  } else {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_dec<Shape::kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == Shape::kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
      if (warp >= Shape::kStorerWarp && warp < Shape::kStorerWarp + Shape::kWarpgroups)
        store_tiles(smem, maps, walk, warp - Shape::kStorerWarp);
    }
  }
}

/// One block for each tile of C, but no more blocks than the GPU holds at one time.
template <class Shape, class Epilogue>
void launch_gemm(const Gemm& p, int group, const Epilogue& epilogue, cudaStream_t stream) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  const ladder::TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k),
                                   ladder::make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                                   ladder::make_tensor_map(p.c, p.m, p.n, 64, 64)};
  const ladder::TileWalk walk{ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n), group};
  const auto kernel = gemm<Shape, Epilogue>;
  ladder::launch(
      kernel,
      {.name = "05_ws_double_buffer, ratios",
       .grid = ladder::persistent_grid<SharedStorage<Shape>>(kernel, Shape::kThreads, walk.tiles()),
       .block = dim3(Shape::kThreads),
       .shared_bytes = sizeof(SharedStorage<Shape>),
       .stream = stream},
      maps, walk, ladder::tiles_over(p.k, kTile.k), epilogue);
}

}  // namespace lesson05::ratios
