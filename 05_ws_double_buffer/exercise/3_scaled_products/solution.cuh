/// @file
/// Exercise 05.3: scaled products that are right, nearly always.
///
/// Formats with few bits come with scales: here every step along k has a scale for each row, and
/// c += scale[step][row] * (a_step · b_step)[row][column]. The scales come through the ring with their tiles.
/// The kernel usually gives the right result. The CPU device says why that is luck. Mend it.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/cores.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kTile = 64;  ///< rows and columns of c, and the depth of a step
constexpr int kSlots = 2;
constexpr int kThreads = ladder::kWarpgroup + ladder::kWarp;  ///< four warps compute, one thread loads
using Tile = ladder::SwizzledTile<kTile, kTile>;

struct Slot {
  Tile a, b;
  alignas(1024) __nv_bfloat16 scales[kTile];  ///< of the rows of a
};

struct SharedStorage {
  Slot slots[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;
};

struct TensorMaps {
  CUtensorMap a, b, scales;
};

/// One thread loads what belongs to a step.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int k_steps) {
  ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
  for (int step = 0; step < k_steps; ++step) {
    Slot& slot = smem.slots[pipe_lc.producer_acquire()];
    auto* const full = pipe_lc.expect_bytes(sizeof(slot.a) + sizeof(slot.b) + sizeof(slot.scales));
    ptx::tma_load(&slot.a, &maps.a, step * kTile, 0, full);
    ptx::tma_load(&slot.b, &maps.b, 0, step * kTile, full);
    ptx::tma_load(&slot.scales, &maps.scales, 0, step, full);
    pipe_lc.producer_commit_bytes();
  }
}

// Read docs/concepts/mbarriers_and_phases.md and common/device/pipeline.cuh.
// >>> yours
constexpr int kReleases =
    ladder::kWarpgroup;  ///< arrivals that give a slot back: every thread reads scales itself

/// A warpgroup multiplies what lies in a slot, and adds the product with the scales of its rows.
__device__ inline void compute_tile(SharedStorage& smem, __nv_bfloat16* c, int k_steps) {
  const int row = 16 * ladder::warp_in_warpgroup() + ladder::lane_index() / 4;  // of d[0] and d[1]
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  ladder::WgmmaCore<kTile> core;
  float sums[kTile / 2] = {};
  for (int step = 0; step < k_steps; ++step) {
    const Slot& slot = smem.slots[pipe_lc.consumer_wait()];
    core.start(slot.a, 0, slot.b, true);
    const __nv_bfloat16 upper = slot.scales[row], lower = slot.scales[row + 8];
    core.finish<0>();
    ptx::fence_proxy_async();  // TMA overwrites the scales through another proxy
    pipe_lc.consumer_release();
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i) sums[i] += __bfloat162float(i % 4 < 2 ? upper : lower) * core.d[i];
  }
  ladder::store_fragment(sums, c, 0, 0, kTile, kTile);
}
// <<<

/// c [kTile, kTile], with k_steps * kTile columns of a, and k_steps rows of scales. One block.
__global__ void __launch_bounds__(kThreads, 1)
    multiply(const __grid_constant__ TensorMaps maps, __nv_bfloat16* c, const int k_steps) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kReleases);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < ladder::kWarpgroup)
    compute_tile(smem, c, k_steps);
  else if (threadIdx.x == ladder::kWarpgroup)
    load_tiles(smem, maps, k_steps);
}

inline void launch_multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* scales,
                            __nv_bfloat16* c, int k_steps) {
  ladder::launch(multiply,
                 {.name = "scaled_products",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 TensorMaps{ladder::make_tensor_map(a, kTile, k_steps * kTile, kTile, kTile),
                            ladder::make_tensor_map(b, k_steps * kTile, kTile, kTile, kTile),
                            ladder::make_tensor_map(scales, k_steps, kTile, 1, kTile)},
                 c, k_steps);
}

}  // namespace exercise
