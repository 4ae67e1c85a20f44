/// @file
/// Exercise 04.8: find the mistake.
///
/// y is the difference of neighbouring rows of x: y[r][c] = x[r][c] - x[r - 1][c], and y[0] = x[0]. One
/// thread loads tiles of 8 rows, and 64 threads, one for each column, go down the rows. The first row of a
/// tile needs the last one of the tile above. Whether the starter's result is right depends on when tiles
/// land. Mend it, and let tiles be loaded while others are read.
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

constexpr int kSlots = 3;
constexpr int kRows = 8, kColumns = 64;  ///< of a tile
constexpr int kReaders = kColumns, kThreads = kReaders + ladder::kWarp;
using Tile = ladder::SwizzledTile<kRows, kColumns>;

struct SharedStorage {
  Tile slots[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;  ///< one arrival fills a slot, every reader empties it
};

struct TensorMaps {
  CUtensorMap x;
};

// Read docs/concepts/handshake_vocabulary.md and common/device/pipeline.cuh.
// >>> yours
/// One thread.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_lc.producer_acquire();
    ptx::tma_load(&smem.slots[slot], &maps.x, 0, tile * kRows, pipe_lc.expect_bytes(sizeof(Tile)));
    pipe_lc.producer_commit_bytes();
  }
}

/// A thread for each column.
__device__ inline void subtract_rows(SharedStorage& smem, float* y, int tiles) {
  const int column = threadIdx.x;
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  float above = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_lc.consumer_wait();
    for (int row = 0; row < kRows; ++row) {
      const float value = __bfloat162float(smem.slots[slot].at(row, column));
      y[(tile * kRows + row) * kColumns + column] = value - above;
      above = value;
    }
    ptx::fence_proxy_async();  // TMA overwrites it through another proxy
    pipe_lc.consumer_release();
  }
}
// <<<

/// One block.
__global__ void __launch_bounds__(kThreads)
    subtract(const __grid_constant__ TensorMaps maps, float* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kReaders);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kReaders)
    subtract_rows(smem, y, tiles);
  else if (threadIdx.x == kReaders)
    load_tiles(smem, maps, tiles);
}

/// x and y are [tiles * kRows, kColumns].
inline void launch_subtract(const __nv_bfloat16* x, float* y, int tiles) {
  ladder::launch(subtract,
                 {.name = "differences",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 TensorMaps{ladder::make_tensor_map(x, tiles * kRows, kColumns, kRows, kColumns)}, y, tiles);
}

}  // namespace exercise
