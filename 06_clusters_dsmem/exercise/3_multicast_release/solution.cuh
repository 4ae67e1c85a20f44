/// @file
/// Exercise 06.3: who must hear that a slot has been read?
///
/// Two blocks of a cluster need the same tiles. Each loads half of a tile and multicasts it to both, so a
/// loader fills slots in both blocks and may fill them again only when both have read them. Write the
/// release, and how many arrivals the barrier `empty` of a block expects in a phase.
#pragma once
#include <cuda_bf16.h>

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
constexpr int kTile = 64, kHalf = kTile / kBlocks;  ///< rows and columns of a tile; rows that a block loads
constexpr int kReaders = 2 * ladder::kWarp, kThreads = kReaders + ladder::kWarp;
using Tile = ladder::SwizzledTile<kTile, kTile>;

struct SharedStorage {
  Tile slots[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;  ///< full: one arrival, and bytes; empty: kEmptyArrivals
};

struct TensorMaps {
  CUtensorMap x;
};

/// One thread of each block: half of every tile, for both blocks.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  constexpr uint16_t kBoth = (1 << kBlocks) - 1;
  const int first = kHalf * static_cast<int>(ptx::cluster_block_rank());
  ladder::RingPosition<kSlots> filling;
  for (int tile = 0; tile < tiles; ++tile, filling.advance()) {
    ptx::Mbarrier* const full = &smem.pipe_lc.full[filling.slot];
    ptx::mbarrier_wait_cluster(&smem.pipe_lc.empty[filling.slot], filling.parity ^ 1);
    ptx::mbarrier_arrive_expect_bytes(full, sizeof(Tile));  // both halves
    ptx::tma_load_multicast(&smem.slots[filling.slot].panels[0][first], &maps.x, 0, tile * kTile + first,
                            full, kBoth);
  }
}

// Who tells whom that a slot has been read, and when at the earliest?
// Read docs/concepts/clusters_and_dsmem.md and common/ptx/cluster.cuh.
// >>> yours
/// What `empty` of each block expects in a phase.
constexpr int kEmptyArrivals = kBlocks * kReaders;

/// Every reader, when it has read the slot by ordinary loads.
__device__ inline void release(SharedStorage& smem, int slot) {
  ptx::fence_proxy_async();  // TMA overwrites it through another proxy
  for (uint32_t rank = 0; rank < kBlocks; ++rank)
    ptx::mbarrier_arrive_remote_release(&smem.pipe_lc.empty[slot], rank);
}
// <<<

/// y[rank] = (rank + 1) x, tile after tile.
__device__ inline void read_tiles(SharedStorage& smem, __nv_bfloat16* y, int tiles) {
  const int rank = static_cast<int>(ptx::cluster_block_rank());
  __nv_bfloat16* const mine = y + rank * tiles * kTile * kTile;
  ladder::RingPosition<kSlots> reading;
  for (int tile = 0; tile < tiles; ++tile, reading.advance()) {
    ptx::mbarrier_wait(&smem.pipe_lc.full[reading.slot], reading.parity);
    for (int i = threadIdx.x; i < kTile * kTile; i += kReaders) {
      const float x = __bfloat162float(smem.slots[reading.slot].at(i / kTile, i % kTile));
      mine[tile * kTile * kTile + i] = __float2bfloat16(static_cast<float>(rank + 1) * x);
    }
    release(smem, reading.slot);
  }
}

/// One cluster. x is [tiles * kTile, kTile]; y holds a multiple of it for each block.
__global__ void __launch_bounds__(kThreads)
    multiply(const __grid_constant__ TensorMaps maps, __nv_bfloat16* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kEmptyArrivals);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();  // no block sends before the barriers of both are there
  if (threadIdx.x < kReaders)
    read_tiles(smem, y, tiles);
  else if (threadIdx.x == kReaders)
    load_tiles(smem, maps, tiles);
  ptx::cluster_sync();  // no block leaves while the other may still reach it
}

inline void launch_multiply(const __nv_bfloat16* x, __nv_bfloat16* y, int tiles) {
  ladder::launch(multiply,
                 {.name = "multicast_release",
                  .grid = dim3(kBlocks),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .cluster = dim3(kBlocks)},
                 TensorMaps{ladder::make_tensor_map(x, tiles * kTile, kTile, kHalf, kTile)}, y, tiles);
}

}  // namespace exercise
