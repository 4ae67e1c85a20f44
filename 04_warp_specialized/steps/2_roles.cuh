/// @file
/// Lesson 04, step 2: one warp loads, and does nothing else; two warpgroups compute.
///
/// Added since step 1: roles, each with a loop over the steps of its own. The loader does not compute, so
/// the warpgroups tell it that they have read the slot: by a second mbarrier, not by a barrier of the whole
/// block. A Pipeline holds both mbarriers; its Producer and its Consumer count the phases.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/epilogue.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/tma.cuh"

namespace lesson04::roles {
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
__device__ __forceinline__ void compute_tiles(Smem& smem, const Gemm& p, TileIndex tile, int k_steps) {
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
  store_sums<Core>(core.d, p.c, tile.row * kTile.m + row_offset, tile.column * kTile.n, p.m, p.n);
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
    compute_tiles(smem, p, tile, k_steps);
  } else if (ptx::elect_one()) {
    load_tiles(smem, maps, tile, k_steps);
  }
  // [roles]
}

/// One block for each tile of C.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, kPanelColumns),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, kPanelColumns)};
  ladder::launch(gemm,
                 {.name = "04_warp_specialized",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 maps, p);
}

}  // namespace lesson04::roles
