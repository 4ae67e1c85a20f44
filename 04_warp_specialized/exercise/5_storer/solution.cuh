/// @file
/// Exercise 04.5: a storer with two staging tiles.
///
/// Four warps fill tiles of C and hand them over through two staging tiles, which they fill in turns; one
/// thread of a fifth sends them to global memory by TMA. With two tiles it need not wait for a store as soon
/// as it has started one: while TMA reads one tile, the next store may already be in line. Write that storer.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kStaging = 2;
constexpr int kTile = 64;  ///< rows and columns
constexpr int kComputeThreads = ladder::kWarpgroup, kThreads = kComputeThreads + ladder::kWarp;

struct TensorMaps {
  CUtensorMap c;
};

struct SharedStorage {
  ladder::SwizzledTile<kTile, kTile> c[kStaging];
  ladder::Pipeline<kStaging> pipe_cs;  ///< all compute threads fill a tile; one arrival gives it back
};

/// What C holds.
__host__ __device__ inline float element(int row, int column) {
  return static_cast<float>((3 * row + 5 * column) % 17);
}

__device__ inline void compute_tiles(SharedStorage& smem, int tiles) {
  ladder::Producer<kStaging> pipe_cs(smem.pipe_cs);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_cs.producer_acquire();  // waits until the storer has given the tile back
    for (int i = threadIdx.x; i < kTile * kTile; i += kComputeThreads)
      smem.c[slot].at(i / kTile, i % kTile) = __float2bfloat16(element(tile * kTile + i / kTile, i % kTile));
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    pipe_cs.producer_commit();
  }
}

/// One thread sends tile t to rows kTile * t .. of C, for each t.
__device__ inline void store_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  ladder::Consumer<kStaging> pipe_cs(smem.pipe_cs);  // consumer_wait() says which tile is full;
  // consumer_release() gives the oldest one back that has been waited for
  // Read docs/concepts/tma.md and common/ptx/tma.cuh.
  // >>> yours
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_cs.consumer_wait();
    ptx::tma_store(&maps.c, &smem.c[slot], 0, tile * kTile);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<kStaging - 1>();  // the tile before has been read
    if (tile > 0) pipe_cs.consumer_release();
  }
  ptx::tma_store_wait<0>();
  // <<<
}

/// One block.
__global__ void __launch_bounds__(kThreads) fill(const __grid_constant__ TensorMaps maps, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_cs.init(kComputeThreads, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kComputeThreads)
    compute_tiles(smem, tiles);
  else if (threadIdx.x == kComputeThreads)
    store_tiles(smem, maps, tiles);
}

/// C is [rows, kTile].
inline void launch_fill(__nv_bfloat16* c, int rows) {
  ladder::launch(
      fill,
      {.name = "storer", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(c, rows, kTile, kTile, kTile)}, ladder::tiles_over(rows, kTile));
}

}  // namespace exercise
