/// @file
/// Exercise 04.6, beyond the lesson: a loader that has no TMA.
///
/// A warp loads tiles with cp.async, and two warps reverse them. TMA counts its bytes at the barrier by
/// itself. With cp.async the lanes of the loader wait for their own copies before they say that a slot is
/// full. If they wait at once, only one tile is ever on its way: say it kAhead tiles later.
/// (variants/roles_without_wgmma.cuh has the barrier wait instead, by cp.async.mbarrier.arrive. Do without
/// it: here the waits are yours.)
#pragma once
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "common/cuda/launch.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr int kSlots = 4, kAhead = kSlots - 1;
constexpr int kTile = 256;  ///< floats
constexpr int kComputeThreads = 2 * ladder::kWarp, kThreads = kComputeThreads + ladder::kWarp;

struct SharedStorage {
  alignas(16) float slots[kSlots][kTile];
  ladder::Pipeline<kSlots>
      pipe_lc;  ///< every lane of the loader fills a slot; every compute thread empties it
};

/// Starts the copies of this lane's share of a tile: 16 bytes at a time.
__device__ inline void copy(SharedStorage& smem, const float* x, int tile, int slot) {
  for (int i = 4 * ladder::lane_index(); i < kTile; i += 4 * ladder::kWarp)
    __pipeline_memcpy_async(&smem.slots[slot][i], &x[tile * kTile + i], 16);
}

/// A warp fills the ring. A RingPosition is a slot and the parity of its barriers' phase: `empty` is waited
/// for with the other parity, because on the first lap all slots are empty.
__device__ inline void load_tiles(SharedStorage& smem, const float* x, int tiles) {
  // Read 03_double_buffer/README.md and common/device/pipeline.cuh.
  // >>> yours
  ladder::RingPosition<kSlots> filling, landed;
  for (int tile = 0; tile < tiles + kAhead; ++tile) {
    if (tile < tiles) {
      ptx::mbarrier_wait(&smem.pipe_lc.empty[filling.slot], filling.parity ^ 1);
      copy(smem, x, tile, filling.slot);
      filling.advance();
    }
    __pipeline_commit();  // after the last tile an empty batch, so that the count below stays right
    if (tile < kAhead) continue;
    __pipeline_wait_prior(kAhead);  // all batches but the last kAhead have landed
    ptx::mbarrier_arrive(&smem.pipe_lc.full[landed.slot]);
    landed.advance();
  }
  // <<<
}

/// y[first + i] = x[first + kTile - 1 - i] in each tile.
__device__ inline void reverse_tiles(SharedStorage& smem, float* y, int tiles) {
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_lc.consumer_wait();
    for (int i = threadIdx.x; i < kTile; i += kComputeThreads)
      y[tile * kTile + i] = smem.slots[slot][kTile - 1 - i];
    pipe_lc.consumer_release();
  }
}

__global__ void __launch_bounds__(kThreads) reverse(const float* x, float* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(ladder::kWarp, kComputeThreads);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kComputeThreads)
    reverse_tiles(smem, y, tiles);
  else
    load_tiles(smem, x, tiles);
}

inline void launch_reverse(const float* x, float* y, int tiles) {
  ladder::launch(reverse,
                 {.name = "cp_async_loader",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 x, y, tiles);
}

}  // namespace exercise
