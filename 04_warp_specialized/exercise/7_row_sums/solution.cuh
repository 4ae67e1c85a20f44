/// @file
/// Exercise 04.7: find the mistake.
///
/// y holds the sums of a's rows. A strip is 64 rows, its tiles are 64 columns wide. One thread loads the
/// tiles of a strip, strip after strip, and 64 threads, one for each row, add them up. The starter is right
/// for strips of 4 tiles, and for a single strip of any length. For two strips of 3 tiles it is not. Mend it.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kSlots = 2;
constexpr int kTile = 64;  ///< rows and columns
constexpr int kAddingThreads = kTile, kThreads = kAddingThreads + ladder::kWarp;
using Tile = ladder::SwizzledTile<kTile, kTile>;

struct SharedStorage {
  Tile slots[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;  ///< one arrival fills a slot, every adding thread empties it
};

struct TensorMaps {
  CUtensorMap a;
};

// Read docs/concepts/mbarriers_and_phases.md and common/device/pipeline.cuh.
// >>> yours
/// One thread.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int strips, int tiles) {
  ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
  for (int strip = 0; strip < strips; ++strip) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int slot = pipe_lc.producer_acquire();
      ptx::tma_load(&smem.slots[slot], &maps.a, tile * kTile, strip * kTile,
                    pipe_lc.expect_bytes(sizeof(Tile)));
      pipe_lc.producer_commit_bytes();
    }
  }
}

/// A thread for each row of a strip.
__device__ inline void add_tiles(SharedStorage& smem, float* y, int strips, int tiles) {
  const int row = threadIdx.x;
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  for (int strip = 0; strip < strips; ++strip) {
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const int slot = pipe_lc.consumer_wait();
      for (int column = 0; column < kTile; ++column)
        sum += __bfloat162float(smem.slots[slot].at(row, column));
      ptx::fence_proxy_async();  // TMA overwrites it through another proxy
      pipe_lc.consumer_release();
    }
    y[strip * kTile + row] = sum;
  }
}
// <<<

/// One block.
__global__ void __launch_bounds__(kThreads)
    add_rows(const __grid_constant__ TensorMaps maps, float* y, const int strips, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kAddingThreads);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kAddingThreads)
    add_tiles(smem, y, strips, tiles);
  else if (threadIdx.x == kAddingThreads)
    load_tiles(smem, maps, strips, tiles);
}

/// a is [strips * kTile, tiles * kTile].
inline void launch_add_rows(const __nv_bfloat16* a, float* y, int strips, int tiles) {
  ladder::launch(
      add_rows,
      {.name = "row_sums", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(a, strips * kTile, tiles * kTile, kTile, kTile)}, y, strips, tiles);
}

}  // namespace exercise
