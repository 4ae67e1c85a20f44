/// @file
/// Lesson 04: every warp has one job, for good: load, compute or store.
///
/// Added since 02: roles, TMA copies that one thread starts, and persistent blocks that go from tile to tile.
/// Roles hand slots over through two pipelines: pipe_lc from the loader to compute, pipe_cs from compute to
/// the storer. Each has one slot: the loader waits while compute reads it. What overlaps is the store of a
/// tile with the products of the next, and the waits of one block with the work of the other on its
/// multiprocessor.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/cores.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/unrolled.cuh"
#include "common/host/problem/lesson.hpp"
#include "common/ptx/tma.cuh"

namespace lesson04 {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
constexpr int kWarpgroups = kTile.m / 64;  ///< that compute; each multiplies 64 rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + 2 * kWarp;
constexpr int kStagedN = 64;  ///< columns of C that are handed over at a time

/// The slot, and a staging tile for a piece of C.
template <int kSlotK>
struct SharedStorage {
  SwizzledTile<kTile.m, kSlotK> a;
  SwizzledTile<kSlotK, kTile.n> b;
  SwizzledTile<kTile.m, kStagedN> c;
  Pipeline<1> pipe_lc, pipe_cs;
};

// [load_tiles]
/// One thread fills the slot, tile after tile. TMA moves panels of 64 columns.
template <int kSlotK>
__device__ __forceinline__ void load_tiles(auto& smem, const TensorMaps& maps, const TileWalk& walk,
                                           int k_steps) {
  Producer pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    for (int step = 0; step < k_steps; ++step) {
      pipe_lc.producer_acquire();  // waits until both compute warpgroups have released the slot
      auto* const full = pipe_lc.expect_bytes(sizeof(smem.a) + sizeof(smem.b));
      for (int k = 0; k < kSlotK; k += 64)  // past the end of k TMA brings zeros
        ptx::tma_load(&smem.a.panels[k / 64], &maps.a, step * kSlotK + k, tile.row * kTile.m, full);
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_load(&smem.b.panels[column / 64], &maps.b, tile.column * kTile.n + column, step * kSlotK,
                      full);
      pipe_lc.producer_commit_bytes();
    }
  }
}
// [load_tiles]

/// Each warpgroup multiplies its 64 rows; together they hand finished tiles to the storer, kStagedN
/// columns at a time.
__device__ __forceinline__ void compute_tiles(auto& smem, const TileWalk& walk, int k_steps) {
  const int my_rows = 64 * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  for ([[maybe_unused]] const auto tile : walk) {
    WgmmaCore<kTile.n> core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      pipe_lc.consumer_wait();
      core.start(smem.a, my_rows, smem.b, step == 0);
      core.template finish<0>();  // there is no other slot to go on with
      pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);
    }
    // [k_loop]

    unrolled<kTile.n / kStagedN>([&](auto piece) {
      pipe_cs.producer_acquire();  // waits until the storer has read the piece before
      stage_fragment<kStagedN* decltype(piece)::value>(core.d, smem.c, my_rows);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      pipe_cs.producer_commit();
    });
  }
}

/// One thread sends what is staged to global memory.
__device__ __forceinline__ void store_tiles(auto& smem, const TensorMaps& maps, const TileWalk& walk) {
  Consumer pipe_cs(smem.pipe_cs);
  for (const auto tile : walk) {
    for (int first = 0; first < kTile.n; first += kStagedN) {
      pipe_cs.consumer_wait();
      ptx::tma_store(&maps.c, &smem.c, tile.column * kTile.n + first, tile.row * kTile.m);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8.
template <int kSlotK>
__global__ void __launch_bounds__(kThreads, 2)
    gemm(const __grid_constant__ TensorMaps maps, const TileWalk walk, const int k_steps) {
  auto& smem = shared_storage<SharedStorage<kSlotK>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);
    smem.pipe_cs.init(kComputeThreads, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    compute_tiles(smem, walk, k_steps);
  } else if (lane_index() == 0) {
    if (warp == kLoaderWarp) load_tiles<kSlotK>(smem, maps, walk, k_steps);
    if (warp == kStorerWarp) store_tiles(smem, maps, walk);
  }
  // [roles]
}

/// As many blocks as the GPU holds at one time, or as there are tiles.
template <int kSlotK>
void launch_gemm(const Gemm& p, int group, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, 64),
                           make_tensor_map(p.b, p.k, p.n, kSlotK, 64),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, 64)};
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n), group};
  ladder::launch(gemm<kSlotK>,
                 {.name = "04_warp_specialized",
                  .grid = persistent_grid<SharedStorage<kSlotK>>(gemm<kSlotK>, kThreads, walk.tiles()),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlotK>),
                  .stream = stream},
                 maps, walk, tiles_over(p.k, kSlotK));
}

/// The lesson, its knobs and its rungs.
const Lesson& lesson();

}  // namespace lesson04
