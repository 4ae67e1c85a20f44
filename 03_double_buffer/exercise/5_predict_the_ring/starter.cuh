/// @file
/// Exercise 03.5: how deep must a ring be?
///
/// The ring of lesson 03: a thread waits for its copies of a tile, all meet, the slot of the tile *before* is
/// filled again, and the tile is worked on. Predict what the CPU device's clock says of it. Its constants:
///   - 42 bytes a cycle come from memory, each 700 cycles after it was asked for (ClockModel)
///   - together, all threads load 4 bytes each from shared memory and work on them in 5 cycles: as many for
///     one thread as for 64
///   - a barrier takes 20 cycles; what else there is takes a cycle or two, and may be left out
#pragma once
#include <cuda_pipeline.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kThreads = 64, kCopies = 4;  ///< of 16 bytes, that a thread makes for each tile
constexpr int kTileBytes = 16 * kCopies * kThreads;
constexpr int kLoads = 40;  ///< of 4 bytes, that a thread works on for each tile

// Cycles may be 5 % off.
// Read docs/cost_model.md and common/cpu_device/observe/clock.hpp.
// >>> yours
constexpr int kLoadCycles = 0;       ///< from the start of a tile's copies until its last byte has landed
constexpr int kComputeCycles = 0;    ///< of a tile and its barrier, where no copy is waited for
constexpr int kSlots = 0;            ///< the fewest with which no copy is waited for, except at the beginning
constexpr int kBytesOnTheirWay = 0;  ///< with so many slots, right after a slot was filled again
constexpr int kCyclesOneLess = 0;    ///< that each further tile takes with one slot less
// <<<

template <int kDepth>
struct SharedStorage {
  float4 slots[kDepth][kCopies * kThreads];
};

template <int kDepth>
__global__ void __launch_bounds__(kThreads) work(const float4* x, float* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage<kDepth>>();
  constexpr int kAhead = kDepth - 1;
  const auto load = [&](int tile) {
    for (int i = threadIdx.x; i < kCopies * kThreads && tile < tiles; i += kThreads)
      __pipeline_memcpy_async(&smem.slots[tile % kDepth][i], &x[tile * kCopies * kThreads + i],
                              sizeof(float4));
    __pipeline_commit();
  };
  for (int tile = 0; tile < kAhead; ++tile) load(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(kAhead - 1);
    __syncthreads();
    load(tile + kAhead);  // into the slot of the tile before
    const auto* const slot = reinterpret_cast<const float*>(smem.slots[tile % kDepth]);
    float sum = 0;
    for (int i = 0; i < kLoads; ++i) sum += slot[threadIdx.x + 16 * i];
    y[tile * kThreads + threadIdx.x] = sum;
  }
}

template <int kDepth>
void launch_work(const float4* x, float* y, int tiles) {
  ladder::launch(work<kDepth>,
                 {.name = "predict_the_ring",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kDepth>)},
                 x, y, tiles);
}

}  // namespace exercise
