/// @file
/// Exercise 06.1: blocks of a cluster add up through each other's shared memory.
///
/// Four blocks of a cluster sum a quarter of a row each; every block then needs the sum of the whole row, to
/// divide its quarter by it. The quarters are in shared memory of four blocks: write how they meet, without
/// global memory.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr int kBlocks = 4;    ///< of a cluster
constexpr int kQuarter = 64;  ///< elements of a row that a block sums up

struct SharedStorage {
  float quarter;  ///< what this block has summed up
};

/// The sum of the row: of `smem.quarter` in all blocks of the cluster. Called by all threads of all blocks,
/// when thread 0 of each has stored its quarter; when it returns no block needs another one any more.
__device__ inline float sum_of_row(SharedStorage& smem) {
  // Read docs/concepts/clusters_and_dsmem.md and common/ptx/cluster.cuh.
  // >>> yours
  (void)smem;
  return 1;
  // <<<
}

/// y = x / (the sum of x's row); both are [rows, kBlocks * kQuarter], and a cluster has one row.
__global__ void __launch_bounds__(ladder::kWarp) normalise(const float* x, float* y) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int first = blockIdx.x * kQuarter;  // blocks of a cluster lie side by side
  const int lane = ladder::lane_index();
  float sum = 0;
  for (int i = lane; i < kQuarter; i += ladder::kWarp) sum += x[first + i];
  for (int step = ladder::kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (lane == 0) smem.quarter = sum;

  const float of_row = sum_of_row(smem);
  for (int i = lane; i < kQuarter; i += ladder::kWarp) y[first + i] = x[first + i] / of_row;
}

inline void launch_normalise(const float* x, float* y, int rows) {
  ladder::launch(normalise,
                 {.name = "dsmem_sum",
                  .grid = dim3(rows * kBlocks),
                  .block = dim3(ladder::kWarp),
                  .shared_bytes = sizeof(SharedStorage),
                  .cluster = dim3(kBlocks)},
                 x, y);
}

}  // namespace exercise
