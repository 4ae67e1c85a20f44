/// @file
/// Exercise 04.1: the storer's handshake.
///
/// Four warps compute tiles of C and put one after the other into the only staging tile; one thread of a
/// fifth sends them to global memory by TMA. Write what that thread does: it must not send a tile too early,
/// and not give it back while TMA still reads it.
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

constexpr int kTile = 64;  ///< rows and columns
constexpr int kComputeThreads = ladder::kWarpgroup, kThreads = kComputeThreads + ladder::kWarp;

struct TensorMaps {
  CUtensorMap c;
};

struct SharedStorage {
  ladder::SwizzledTile<kTile, kTile> c;
  ladder::Pipeline<1> pipe_cs;  ///< all compute threads fill the tile; the storer empties it
};

/// Doubles the elements of x, tile after tile.
__device__ inline void compute_tiles(SharedStorage& smem, const __nv_bfloat16* x, int rows, int tiles) {
  ladder::Producer<1> pipe_cs(smem.pipe_cs);
  for (int tile = 0; tile < tiles; ++tile) {
    pipe_cs.producer_acquire();  // waits until the storer has given the tile back
    for (int i = threadIdx.x; i < kTile * kTile; i += kComputeThreads) {
      const int row = tile * kTile + i / kTile, column = i % kTile;
      const float value = row < rows ? __bfloat162float(x[row * kTile + column]) : 0;
      smem.c.at(i / kTile, column) = __float2bfloat16(2 * value);
    }
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    pipe_cs.producer_commit();
  }
}

/// One thread sends tile t to rows kTile * t .. of C, for each t.
__device__ inline void store_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  // >>> yours
  (void)smem, (void)maps, (void)tiles;
  // <<<
}

/// C = 2 x, both row-major [rows, kTile]; one block.
__global__ void __launch_bounds__(kThreads)
    double_rows(const __nv_bfloat16* x, const __grid_constant__ TensorMaps maps, const int rows,
                const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_cs.init(kComputeThreads, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kComputeThreads)
    compute_tiles(smem, x, rows, tiles);
  else if (threadIdx.x == kComputeThreads)
    store_tiles(smem, maps, tiles);
}

inline void launch_double_rows(const __nv_bfloat16* x, __nv_bfloat16* c, int rows) {
  ladder::launch(
      double_rows,
      {.name = "storer", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)}, x,
      TensorMaps{ladder::make_tensor_map(c, rows, kTile, kTile, kTile)}, rows,
      ladder::tiles_over(rows, kTile));
}

}  // namespace exercise
