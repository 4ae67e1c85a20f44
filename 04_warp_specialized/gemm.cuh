/// @file
/// Lesson 04: every warp has one job, for good: load, compute or store.
///
/// Added since 03: roles, TMA copies that one thread starts, and persistent blocks that go from tile to tile.
/// Roles hand slots over through two pipelines: pipe_lc from the loader to compute, pipe_cs from compute to
/// the storer. There is only one slot, so the loader still waits while compute works on it; what runs at the
/// same time is the storing of one tile and the computing of the next.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/residency.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/cores.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/host/problem/lesson.hpp"
#include "common/ptx/tma.cuh"

namespace lesson04 {
using ladder::Gemm;

constexpr ladder::TileShape kTile{128, 128, 64};  ///< k: of a panel; a slot holds one or more
constexpr int kWarpgroups = kTile.m / 64;         ///< that compute; each multiplies 64 rows of A
constexpr int kComputeThreads = kWarpgroups * ladder::kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / ladder::kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + 2 * ladder::kWarp;
constexpr int kBlocksPerSm = 2;

using Core = ladder::WgmmaCore<kTile.n>;
using TileA = ladder::SwizzledTile<kTile.m, kTile.k>;
using TileB = ladder::SwizzledTile<kTile.k, kTile.n>;
using TileC = ladder::SwizzledTile<kTile.m, kTile.n>;

/// kPanels: how much of k one hand-over brings, in panels of 64.
template <int kPanels>
struct SharedStorage {
  TileA a[kPanels];
  TileB b[kPanels];
  TileC c;
  ladder::Pipeline<1> pipe_lc, pipe_cs;
};

struct TensorMaps {
  CUtensorMap a, b, c;
};

// [load_tiles]
/// One thread fills the slot, tile after tile.
template <int kPanels>
__device__ __forceinline__ void load_tiles(SharedStorage<kPanels>& smem, const TensorMaps& maps,
                                           const ladder::TileWalk& walk, int k_steps) {
  ladder::Producer<1> pipe(smem.pipe_lc);
  for (int index = walk.first(); index < walk.end(); index += walk.step()) {
    const auto tile = walk.at(index);
    for (int step = 0; step < k_steps; ++step) {
      pipe.producer_acquire();  // waits until both compute warpgroups have released the slot
      pipe.expect_bytes(sizeof(smem.a) + sizeof(smem.b));
#pragma unroll
      for (int panel = 0; panel < kPanels; ++panel) {
        const int k = (step * kPanels + panel) * kTile.k;  // past the end of k TMA brings zeros
        ptx::tma_load(&smem.a[panel], &maps.a, k, tile.row * kTile.m, pipe.barrier());
#pragma unroll
        for (int column = 0; column < kTile.n; column += 64)
          ptx::tma_load(&smem.b[panel].panels[column / 64], &maps.b, tile.column * kTile.n + column, k,
                        pipe.barrier());
      }
      pipe.producer_commit_bytes();
    }
  }
}
// [load_tiles]

/// Two warpgroups multiply what the slot holds and put finished tiles into the staging tile.
template <int kPanels>
__device__ __forceinline__ void compute_tiles(SharedStorage<kPanels>& smem, const ladder::TileWalk& walk,
                                              int k_steps) {
  ladder::Consumer<1> loaded(smem.pipe_lc);
  ladder::Producer<1> finished(smem.pipe_cs);
  const int my_rows = 64 * ladder::warpgroup_index();
  const bool elected = threadIdx.x % ladder::kWarpgroup == 0;
  for (int index = walk.first(); index < walk.end(); index += walk.step()) {
    Core core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      loaded.consumer_wait();
#pragma unroll 1  // unrolled, the addresses of all panels take more registers than two blocks have
      for (int panel = 0; panel < kPanels; ++panel)
        core.start(smem.a[panel], my_rows, smem.b[panel], step == 0 && panel == 0);
      core.template finish<0>();  // there is no other slot to go on with
      loaded.consumer_release(elected);
    }
    // [k_loop]
    finished.producer_acquire();  // waits until the storer has read the tile before
    ladder::stage_fragment<0>(core.d, smem.c, my_rows);
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    finished.producer_commit();
  }
}

/// One thread sends finished tiles to global memory.
template <int kPanels>
__device__ __forceinline__ void store_tiles(SharedStorage<kPanels>& smem, const TensorMaps& maps,
                                            const ladder::TileWalk& walk) {
  ladder::Consumer<1> pipe(smem.pipe_cs);
  for (int index = walk.first(); index < walk.end(); index += walk.step()) {
    const auto tile = walk.at(index);
    pipe.consumer_wait();
#pragma unroll
    for (int column = 0; column < kTile.n; column += 64)
      ptx::tma_store(&maps.c, &smem.c.panels[column / 64], tile.column * kTile.n + column,
                     tile.row * kTile.m);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
    pipe.consumer_release();
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8.
template <int kPanels>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    gemm(const __grid_constant__ TensorMaps maps, const ladder::TileWalk walk, const int k_steps) {
  auto& smem = ladder::shared_storage<SharedStorage<kPanels>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);
    smem.pipe_cs.init(kComputeThreads, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  // [roles]
  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < kLoaderWarp) {
    compute_tiles(smem, walk, k_steps);
  } else if (ladder::lane_index() == 0) {
    if (warp == kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
    if (warp == kStorerWarp) store_tiles(smem, maps, walk);
  }
  // [roles]
}

/// As many blocks as the GPU holds at one time, or as there are tiles.
template <int kPanels>
void launch_gemm(const Gemm& p, int group, cudaStream_t stream) {
  const TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k),
                           ladder::make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           ladder::make_tensor_map(p.c, p.m, p.n, kTile.m, 64)};
  const ladder::TileWalk walk{ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n), group};
  const int tiles = walk.tile_rows * walk.tile_columns;
  const int resident = ladder::resident_blocks(gemm<kPanels>, kThreads, sizeof(SharedStorage<kPanels>));
  ladder::launch(gemm<kPanels>,
                 {.name = "04_warp_specialized",
                  .grid = dim3(tiles < resident ? tiles : resident),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kPanels>),
                  .stream = stream},
                 maps, walk, ladder::tiles_over(p.k, kPanels * kTile.k));
}

/// The lesson, its knobs and its rungs.
const ladder::Lesson& lesson();

}  // namespace lesson04
