/// @file
/// Lesson 04, step 1: one thread asks for a tile, and the TMA engine brings it.
///
/// Added since 02: no thread copies chunks of a tile any more. One thread says at an mbarrier how many bytes
/// will come, and asks TMA for boxes of A and B; TMA counts their bytes at the mbarrier as they land, and all
/// threads wait there. Each step is a phase of the mbarrier, and a wait names its parity. TMA swizzles a tile
/// as its map says. It writes through the async proxy, by which wgmma reads, so nothing is published. There
/// are no roles: loading and computing still take turns.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

namespace lesson04::tma {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kThreads = kWarpgroups * kWarpgroup;

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

struct SharedStorage {
  TileA a;
  TileB b;
  ptx::Mbarrier full;  ///< its phase is over when the bytes of a step have landed
};

/// Each block computes a tile of C; n and k are multiples of 8, as TMA wants rows of whole 16 bytes.
/// While one block loads, another one may compute.
__global__ void __launch_bounds__(kThreads, 2) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&smem.full, 1);  // one thread arrives in each phase
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  Core core;
  const int row_offset = Core::kRows * warpgroup_index();

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    // elect_one where a thread asks TMA: by it the compiler knows that one thread asks, and makes no loop.
    if (threadIdx.x < kWarp && ptx::elect_one()) {
      ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(TileA) + sizeof(TileB));
      const int k = step * kTile.k;
      ptx::tma_load(&smem.a, &maps.a, k, first_row, &smem.full);
      for (int panel = 0; panel < TileB::kPanels; ++panel)  // TMA moves a panel at a time
        ptx::tma_load(&smem.b.panels[panel], &maps.b, first_column + panel * kPanelColumns, k, &smem.full);
    }
    ptx::mbarrier_wait(&smem.full, step % 2);           // the tiles are complete
    core.start(smem.a, row_offset, smem.b, step == 0);  // the first product overwrites the sums
    core.finish();
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
  store_sums<Core>(core.d, p.c, first_row + row_offset, first_column, p.m, p.n);
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

}  // namespace lesson04::tma
