/// @file
/// Exercise 03.4: find the mistake.
///
/// A block smooths a long vector: y[i] = x[i - 1] + 2 x[i] + x[i + 1]. Tiles come through a ring of four
/// slots with the handshake of lesson 03: each thread waits for its own copies, then all meet. A tile is
/// stored with the last element before it and the first one after it. The marked lines hold one mistake. Most
/// runs are right. Let the CPU device run it and read its report, then mend the loop without making it
/// slower.
#pragma once
#include <cuda_pipeline.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kThreads = 64, kTile = 4 * kThreads, kSlots = 4, kAhead = kSlots - 1;
constexpr int kMargin = 4;  ///< elements before a tile and after it: copies are 16 bytes

struct SharedStorage {
  alignas(16) float slots[kSlots][kMargin + kTile + kMargin];  ///< slot s holds tiles s, s + kSlots, ...
};

/// Starts to copy this thread's 16 bytes of a tile; the first two threads also copy its margins. x has
/// kMargin elements before its first tile and after its last one.
__device__ inline void copy(SharedStorage& smem, const float* x, int tile) {
  float* const slot = smem.slots[tile % kSlots];
  const float* const from = x + tile * kTile - kMargin;
  const int first = 4 * threadIdx.x;
  __pipeline_memcpy_async(&slot[kMargin + first], &from[kMargin + first], 16);
  if (threadIdx.x < 2) {
    const int margin = threadIdx.x == 0 ? 0 : kMargin + kTile;
    __pipeline_memcpy_async(&slot[margin], &from[margin], 16);
  }
}

/// Writes this thread's 4 elements of y.
__device__ inline void smooth(const SharedStorage& smem, float* y, int tile) {
  const float* const slot = smem.slots[tile % kSlots] + kMargin;
  for (int i = threadIdx.x; i < kTile; i += kThreads)
    y[tile * kTile + i] = slot[i - 1] + 2 * slot[i] + slot[i + 1];
}

/// Called by all threads of the block: tiles 0 .. tiles - 1.
__device__ inline void stream(SharedStorage& smem, const float* x, float* y, int tiles) {
  // Read docs/concepts/handshake_vocabulary.md and common/cpu_device/shadow/cuda_pipeline_primitives.h.
  // >>> yours
  const auto load = [&](int tile) {
    if (tile < tiles) copy(smem, x, tile);
    __pipeline_commit();  // empty after the last tile, because wait_prior counts batches
  };
  const auto load_again = [&](int tile) {  // into a slot that held a tile before
    if (tile < tiles) __syncthreads();     // nobody reads that one any more
    load(tile);
  };
  for (int tile = 0; tile < kAhead; ++tile) load(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(kAhead - 1);
    load_again(tile + kAhead);
    smooth(smem, y, tile);
  }
  // <<<
}

__global__ void __launch_bounds__(kThreads) smooth_tiles(const float* x, float* y, const int tiles) {
  stream(ladder::shared_storage<SharedStorage>(), x, y, tiles);
}

inline void launch_smooth(const float* x, float* y, int tiles) {
  ladder::launch(smooth_tiles,
                 {.name = "find_the_race",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 x, y, tiles);
}

}  // namespace exercise
