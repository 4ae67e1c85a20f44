/// @file
/// Exercise 06.2: find the mistake. Rows are wrong once in a while.
///
/// As in 06.1 the blocks of a cluster divide rows by their sums. But here a cluster stays and works on row
/// after row, since starting one costs more than a row. The kernel was right with one row. Find out from the
/// report of the CPU device which two accesses meet, and mend the marked lines. Rows are short, so a meeting
/// of the cluster costs: one for each row must be enough, and one at the end.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr int kBlocks = 4;    ///< of a cluster
constexpr int kQuarter = 64;  ///< elements of a row that a block sums up
constexpr int kColumns = kBlocks * kQuarter;

/// The sum of `count` elements, in all lanes of a warp.
__device__ inline float warp_sum(const float* x, int count) {
  float sum = 0;
  for (int i = ladder::lane_index(); i < count; i += ladder::kWarp) sum += x[i];
  for (int step = ladder::kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

// Read docs/concepts/clusters_and_dsmem.md and common/ptx/cluster.cuh.
// >>> yours
struct SharedStorage {
  float quarter[2];  ///< what this block has summed up of a row, of even rows and of odd ones
};

/// y = x / (the sum of x's row), rows [rows, kColumns]. One cluster, a warp in each block.
__global__ void __launch_bounds__(ladder::kWarp) normalise(const float* x, float* y, const int rows) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int rank = static_cast<int>(ptx::cluster_block_rank());
  for (int row = 0; row < rows; ++row) {
    const int first = row * kColumns + rank * kQuarter;
    const float mine = warp_sum(x + first, kQuarter);
    if (ladder::lane_index() == 0) smem.quarter[row % 2] = mine;
    // All quarters of this row are there; and all blocks have read those of the row before, so that the row
    // after this one may overwrite them.
    ptx::cluster_sync();
    float sum = 0;
    for (int other = 0; other < kBlocks; ++other) sum += *ptx::map_shared(&smem.quarter[row % 2], other);
    for (int i = ladder::lane_index(); i < kQuarter; i += ladder::kWarp) y[first + i] = x[first + i] / sum;
  }
  ptx::cluster_sync();  // all blocks have read: each may leave
}
// <<<

inline void launch_normalise(const float* x, float* y, int rows) {
  ladder::launch(normalise,
                 {.name = "one_meeting",
                  .grid = dim3(kBlocks),
                  .block = dim3(ladder::kWarp),
                  .shared_bytes = sizeof(SharedStorage),
                  .cluster = dim3(kBlocks)},
                 x, y, rows);
}

}  // namespace exercise
