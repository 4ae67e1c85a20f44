/// @file
/// Lesson 04, step 3: C goes through shared memory, and TMA stores it.
///
/// Added since step 2: a staging tile. Each compute warp writes its 16 rows of C there, and one of its lanes
/// lets TMA store them. TMA leaves out what lies outside of C.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/tma.cuh"

namespace lesson04::tma_store {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp;
constexpr int kThreads = kComputeThreads + kWarp;

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

/// The roles take its type as an argument, as in lesson 05, where the number of slots is a part of the type.
struct SharedStorage {
  TileA a;
  TileB b;
  SwizzledTile<kTile.m, kTile.n> c;
  Pipeline<1> pipe_lc;  ///< from the loader to compute
};

// [load_tiles]
/// The loader: one thread fills the slot, step after step.
template <class Smem>
__device__ __forceinline__ void load_tiles(Smem& smem, const TensorMaps& maps, TileIndex tile, int k_steps) {
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  Producer pipe_lc(smem.pipe_lc);
  for (int step = 0; step < k_steps; ++step) {
    pipe_lc.producer_acquire();  // waits until both compute warpgroups have released the slot
    ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));
    const int k = step * kTile.k;
    ptx::tma_load(&smem.a, &maps.a, k, first_row, full);
    for (int panel = 0; panel < TileB::kPanels; ++panel)  // TMA moves a panel at a time
      ptx::tma_load(&smem.b.panels[panel], &maps.b, first_column + panel * kPanelColumns, k, full);
    pipe_lc.producer_commit_bytes();
  }
}
// [load_tiles]

/// Each warpgroup multiplies its rows and stores them.
template <class Smem>
__device__ __forceinline__ void compute_tiles(Smem& smem, const TensorMaps& maps, TileIndex tile,
                                              int k_steps) {
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int row_offset = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Core core;
  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    pipe_lc.consumer_wait();
    core.start(smem.a, row_offset, smem.b, step == 0);  // the first product overwrites the sums
    core.finish();
    pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);  // one arrives for four warps, as in CUTLASS
  }
  // [k_loop]
  // [store_c]
  stage_fragment(core.d, 0, smem.c, row_offset);
  ptx::fence_proxy_async();  // TMA reads what these threads have stored
  __syncwarp();              // all lanes have, so one sends for them
  if (ptx::elect_one()) {
    const int row = row_offset + kStripRows * warp_in_warpgroup();
    for (int panel = 0; panel < smem.c.kPanels; ++panel)
      ptx::tma_store(&maps.c, &smem.c.panels[panel][row], first_column + panel * kPanelColumns,
                     first_row + row);
    ptx::tma_store_commit();
    ptx::tma_store_wait<0>();  // before the staging tile goes away with the block
  }
  // [store_c]
}

/// Each block computes a tile of C; n and k are multiples of 8, as TMA wants rows of whole 16 bytes.
/// While one block loads, another one may compute.
__global__ void __launch_bounds__(kThreads, 2) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
  const int k_steps = tiles_over(p.k, kTile.k);

  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);  // how many arrivals fill a slot, and how many empty it
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    compute_tiles(smem, maps, tile, k_steps);
  } else if (ptx::elect_one()) {
    load_tiles(smem, maps, tile, k_steps);
  }
  // [roles]
}

/// One block for each tile of C.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, kPanelColumns),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, kPanelColumns),
                           make_tensor_map(p.c, p.m, p.n, kStripRows, kPanelColumns)};
  ladder::launch(gemm,
                 {.name = "04_warp_specialized",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 maps, p);
}

}  // namespace lesson04::tma_store
