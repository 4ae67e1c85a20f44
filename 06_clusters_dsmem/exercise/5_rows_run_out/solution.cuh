/// @file
/// Exercise 06.5: find the mistake. The kernel works for 2, 4 and 64 rows, and fails for 3.
///
/// A block computes a mixture of tables: y[row] = the sum over t of weights[row, t] * tables[t]. All rows
/// need the same tables, so the two blocks of a cluster load half of every table each and multicast it. The
/// host rounds the number of blocks up to whole clusters. Find out from the report of the CPU device who
/// reaches whom, and mend the marked lines. Every table must still come from global memory once for a
/// cluster.
#pragma once
#include <cuda_bf16.h>

#include "06_clusters_dsmem/exercise/5_rows_run_out/both_blocks.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kBlocks = 2, kSlots = 2;
constexpr int kTable = 64,
              kHalf = kTable / kBlocks;  ///< rows and columns of a table; rows that a block loads
constexpr int kReaders = 4 * ladder::kWarp, kThreads = kReaders + ladder::kWarp;
constexpr int kMine = kTable * kTable / kReaders;  ///< elements of a row's table that a thread computes
using Table = ladder::SwizzledTile<kTable, kTable>;

struct SharedStorage {
  Table slots[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;  ///< full: one arrival, and bytes; empty: see both_blocks.cuh
};

struct TensorMaps {
  CUtensorMap tables;  ///< [tables * kTable, kTable]
};

/// One thread of each block: half of every table, for both blocks.
__device__ inline void load_tables(SharedStorage& smem, const TensorMaps& maps, int tables) {
  constexpr uint16_t kBoth = (1 << kBlocks) - 1;
  const int first = kHalf * static_cast<int>(ptx::cluster_block_rank());
  ladder::RingPosition<kSlots> filling;
  for (int table = 0; table < tables; ++table, filling.advance()) {
    ptx::Mbarrier* const full = &smem.pipe_lc.full[filling.slot];
    ptx::mbarrier_wait_cluster(&smem.pipe_lc.empty[filling.slot], filling.parity ^ 1);
    ptx::mbarrier_arrive_expect_bytes(full, sizeof(Table));
    ptx::tma_load_multicast(&smem.slots[filling.slot].panels[0][first], &maps.tables, 0,
                            table * kTable + first, full, kBoth);
  }
}

// Read docs/concepts/clusters_and_dsmem.md and common/ptx/cluster.cuh.
// >>> yours
/// Adds up the row's tables, and stores the sum if there is such a row.
__device__ inline void mix(SharedStorage& smem, const float* weights, float* y, int row, int rows,
                           int tables) {
  const bool has_row = row < rows;
  float sum[kMine] = {};
  ladder::RingPosition<kSlots> reading;
  for (int table = 0; table < tables; ++table, reading.advance()) {
    const float weight = has_row ? weights[row * tables + table] : 0;
    ptx::mbarrier_wait(&smem.pipe_lc.full[reading.slot], reading.parity);
    for (int i = 0; i < kMine; ++i) {
      const int element = i * kReaders + static_cast<int>(threadIdx.x);
      sum[i] += weight * __bfloat162float(smem.slots[reading.slot].at(element / kTable, element % kTable));
    }
    both_blocks::release(&smem.pipe_lc.empty[reading.slot]);
  }
  for (int i = 0; i < kMine && has_row; ++i) y[(row * kMine + i) * kReaders + threadIdx.x] = sum[i];
}

__global__ void __launch_bounds__(kThreads)
    mixture(const __grid_constant__ TensorMaps maps, const float* weights, float* y, const int rows,
            const int tables) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, both_blocks::arrivals(kReaders));
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();  // no block sends before the barriers of both are there
  // A block without a row loads and releases all the same: the other one receives from it, and sends to it.
  const int row = static_cast<int>(blockIdx.x);
  if (threadIdx.x < kReaders)
    mix(smem, weights, y, row, rows, tables);
  else if (threadIdx.x == kReaders)
    load_tables(smem, maps, tables);
  ptx::cluster_sync();  // no block leaves while the other may still reach it
}
// <<<

inline void launch_mixture(const __nv_bfloat16* table, const float* weights, float* y, int rows, int tables) {
  ladder::launch(mixture,
                 {.name = "rows_run_out",
                  .grid = dim3((rows + kBlocks - 1) / kBlocks * kBlocks),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .cluster = dim3(kBlocks)},
                 TensorMaps{ladder::make_tensor_map(table, tables * kTable, kTable, kHalf, kTable)}, weights,
                 y, rows, tables);
}

}  // namespace exercise
