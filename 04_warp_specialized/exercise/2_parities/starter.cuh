/// @file
/// Exercise 04.2: slots and parities by hand.
///
/// One warp fills a ring of three slots, and two warps share the reading: warp r of them reads the tiles
/// r, r + 2, r + 4, ... and writes each to y back to front. Nothing remembers a place in the ring for you:
/// there are only the barriers. Write both loops.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr int kSlots = 3, kReaders = 2;
constexpr int kTile = 64;  ///< floats
constexpr int kThreads = (1 + kReaders) * ladder::kWarp;

struct SharedStorage {
  float slots[kSlots][kTile];
  ptx::Mbarrier full[kSlots];   ///< each lane of the filling warp arrives
  ptx::Mbarrier empty[kSlots];  ///< each lane of the warp that has read the tile arrives
};

/// This lane's share of a tile, from x to its slot.
__device__ inline void copy(float (&slot)[kTile], const float* x, int tile) {
  for (int i = ladder::lane_index(); i < kTile; i += ladder::kWarp) slot[i] = x[tile * kTile + i];
}

/// This lane's share of a tile, from its slot to y.
__device__ inline void reverse(const float (&slot)[kTile], float* y, int tile) {
  for (int i = ladder::lane_index(); i < kTile; i += ladder::kWarp) y[tile * kTile + i] = slot[kTile - 1 - i];
}

// Read docs/concepts/mbarriers_and_phases.md and common/ptx/mbarrier.cuh.
// >>> yours
/// All lanes of one warp: every tile, one after the other.
__device__ inline void fill_slots(SharedStorage& smem, const float* x, int tiles) {
  (void)smem, (void)x, (void)tiles;
}

/// All lanes of a reading warp: every second tile. `reader` is 0 or 1.
__device__ inline void read_slots(SharedStorage& smem, float* y, int tiles, int reader) {
  (void)smem, (void)y, (void)tiles, (void)reader;
}
// <<<

__global__ void __launch_bounds__(kThreads) reverse_tiles(const float* x, float* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&smem.full[slot], ladder::kWarp);
      ptx::mbarrier_init(&smem.empty[slot], ladder::kWarp);
    }
  }
  __syncthreads();
  const int warp = threadIdx.x / ladder::kWarp;
  if (warp == 0)
    fill_slots(smem, x, tiles);
  else
    read_slots(smem, y, tiles, warp - 1);
}

inline void launch_reverse_tiles(const float* x, float* y, int tiles) {
  ladder::launch(
      reverse_tiles,
      {.name = "parities", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      x, y, tiles);
}

}  // namespace exercise
