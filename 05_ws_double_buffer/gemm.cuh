/// @file
/// Lesson 05: the same roles with a ring of slots, so that the loader runs ahead of compute.
///
/// Added since 04: kSlots slots instead of one; wgmma that is not drained between steps, because a slot is
/// released one step late; and a tile twice as wide, for one block on a multiprocessor. Its accumulators fit
/// because the warpgroup that only moves data gives registers to those that compute (setmaxnreg).
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
#include "common/ptx/elect.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson05 {
using namespace ladder;

constexpr TileShape kTile{128, 256, 64};
constexpr int kWarpgroups = kTile.m / 64;  ///< that compute; each multiplies 64 rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + kWarpgroup;
/// Of 64 K registers each of 384 threads gets 168: too few for 128 accumulators and all else. Two thirds of
/// the threads take more than the others give: 256 * 232 + 128 * 40 = 384 * 168.
constexpr int kMoverRegisters = 40, kComputeRegisters = 232;
constexpr int kStagedN = 128;  ///< columns of C that are handed over at a time

/// The ring, and a staging tile for a piece of C.
template <int kSlots>
struct SharedStorage {
  SwizzledTile<kTile.m, kTile.k> a[kSlots];
  SwizzledTile<kTile.k, kTile.n> b[kSlots];
  SwizzledTile<kTile.m, kStagedN> c;
  Pipeline<kSlots> pipe_lc;
  Pipeline<1> pipe_cs;
};

// [load_tiles]
/// One thread keeps the ring full: it runs up to kSlots tiles ahead of the tensor cores.
__device__ __forceinline__ void load_tiles(auto& smem, const TensorMaps& maps, const TileWalk& walk,
                                           int k_steps) {
  ptx::tma_prefetch(&maps.a);
  ptx::tma_prefetch(&maps.b);
  Producer pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until both compute warpgroups have released it
      auto* const full = pipe_lc.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
      ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, tile.row * kTile.m, full);
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, tile.column * kTile.n + column,
                      step * kTile.k, full);
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
  constexpr int kInFlight = pipe_lc.kSlots > 1 ? 1 : 0;  // one slot goes back before the next wait
  for ([[maybe_unused]] const auto tile : walk) {
    WgmmaCore<kTile.n> core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.template finish<kInFlight>();  // the step before this one is finished: its slot may be filled
                                          // again
      if (step >= kInFlight) pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);
    }
    core.template finish<0>();
    if (kInFlight > 0) pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);
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
      for (int column = 0; column < kStagedN; column += 64)
        ptx::tma_store(&maps.c, &smem.c.panels[column / 64], tile.column * kTile.n + first + column,
                       tile.row * kTile.m);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8.
template <int kSlots>
__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ TensorMaps maps, const TileWalk walk, const int k_steps) {
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);
    smem.pipe_cs.init(kComputeThreads, 1);
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
    if (warp > kStorerWarp || !ptx::elect_one()) return;
    if (warp == kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
    if (warp == kStorerWarp) store_tiles(smem, maps, walk);
  }
  // [roles]
}

/// As many blocks as the GPU holds at one time, or as there are tiles.
template <int kSlots>
void launch_gemm(const Gemm& p, int group, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, 64),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, 64)};
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n), group};
  ladder::launch(gemm<kSlots>,
                 {.name = "05_ws_double_buffer",
                  .grid = persistent_grid<SharedStorage<kSlots>>(gemm<kSlots>, kThreads, walk.tiles()),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlots>),
                  .stream = stream},
                 maps, walk, tiles_over(p.k, kTile.k));
}

/// The lesson, its knobs and its rungs.
const Lesson& lesson();

}  // namespace lesson05
