/// @file
/// Exercise 04.3: who arrives, how often, and what must be visible before the roles begin.
///
/// C = a + b, tile after tile. Two threads load, one the tiles of a and one those of b; three warps add, each
/// a third of a tile; one thread stores. Above the sums C has some rows of padding, which all threads fill
/// and the storer sends first. Write what comes between the filling and the roles: the arrivals that each
/// barrier expects in a phase, and what the padding and the barriers need so that the roles may use them.
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

constexpr int kSlots = 2, kAddingWarps = 3;
constexpr int kRows = 16 * kAddingWarps, kColumns = 64;  ///< of a tile; each warp adds 16 rows
constexpr int kPadding = 8;                              ///< rows
constexpr int kAddingThreads = kAddingWarps * ladder::kWarp;
constexpr int kThreads = kAddingThreads + 3 * ladder::kWarp;  ///< a warp for each of the three single threads
using Tile = ladder::SwizzledTile<kRows, kColumns>;

struct SharedStorage {
  Tile a[kSlots], b[kSlots];
  Tile sum;
  ladder::SwizzledTile<kPadding, kColumns> padding;
  ladder::Pipeline<kSlots> pipe_lc;  ///< from the loaders to the adding warps
  ladder::Pipeline<1> pipe_cs;       ///< from the adding warps to the storer
};

struct TensorMaps {
  CUtensorMap a, b, padding, sum;  ///< padding and sum describe the two parts of C
};

/// The thread that loads a, and the one that loads b: each fills its own part of every slot.
__device__ inline void load_tiles(SharedStorage& smem, Tile* mine, const CUtensorMap* map, int tiles) {
  ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_lc.producer_acquire();
    ptx::tma_load(&mine[slot], map, 0, tile * kRows, pipe_lc.expect_bytes(sizeof(Tile)));
    pipe_lc.producer_commit_bytes();
  }
}

/// A warp adds its rows. It stages them in `sum` and gives the slot back through its first lane.
__device__ inline void add_tiles(SharedStorage& smem, int tiles) {
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  ladder::Producer<1> pipe_cs(smem.pipe_cs);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_lc.consumer_wait();
    pipe_cs.producer_acquire();
    for (int row = threadIdx.x / ladder::kWarp; row < kRows; row += kAddingWarps)
      for (int column = ladder::lane_index(); column < kColumns; column += ladder::kWarp)
        smem.sum.at(row, column) = __float2bfloat16(__bfloat162float(smem.a[slot].at(row, column)) +
                                                    __bfloat162float(smem.b[slot].at(row, column)));
    ptx::fence_proxy_async();  // TMA reads what this thread has staged, and overwrites what it has read
    __syncwarp();              // the whole warp has read the slot
    pipe_lc.consumer_release(ladder::lane_index() == 0);
    pipe_cs.producer_commit();
  }
}

/// One thread sends the padding, and then the sums.
__device__ inline void store_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  ptx::tma_store(&maps.padding, &smem.padding, 0, 0);
  ptx::tma_store_commit();
  ladder::Consumer<1> pipe_cs(smem.pipe_cs);
  for (int tile = 0; tile < tiles; ++tile) {
    pipe_cs.consumer_wait();
    ptx::tma_store(&maps.sum, &smem.sum, 0, tile * kRows);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
    pipe_cs.consumer_release();
  }
  ptx::tma_store_wait<0>();
}

/// One block.
__global__ void __launch_bounds__(kThreads)
    add(const __grid_constant__ TensorMaps maps, const float padding, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  for (int i = threadIdx.x; i < kPadding * kColumns; i += kThreads)
    smem.padding.at(i / kColumns, i % kColumns) = __float2bfloat16(padding);
  // Read docs/concepts/tma.md and common/device/pipeline.cuh.
  // >>> yours
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(2, kAddingWarps);
    smem.pipe_cs.init(kAddingThreads, 1);
  }
  ptx::fence_proxy_async();  // every thread for the padding that it has written
  __syncthreads();
  // <<<
  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < kAddingWarps) {
    add_tiles(smem, tiles);
  } else if (ladder::lane_index() == 0) {
    if (warp == kAddingWarps) load_tiles(smem, smem.a, &maps.a, tiles);
    if (warp == kAddingWarps + 1) load_tiles(smem, smem.b, &maps.b, tiles);
    if (warp == kAddingWarps + 2) store_tiles(smem, maps, tiles);
  }
}

/// a and b are [tiles * kRows, kColumns]; C has kPadding rows more.
inline void launch_add(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, float padding,
                       int tiles) {
  const int rows = tiles * kRows;
  ladder::launch(
      add, {.name = "add", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(a, rows, kColumns, kRows, kColumns),
                 ladder::make_tensor_map(b, rows, kColumns, kRows, kColumns),
                 ladder::make_tensor_map(c, kPadding, kColumns, kPadding, kColumns),
                 ladder::make_tensor_map(c + kPadding * kColumns, rows, kColumns, kRows, kColumns)},
      padding, tiles);
}

}  // namespace exercise
