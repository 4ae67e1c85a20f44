/// @file
/// Exercise 06.4: who sends what to whom in a cluster of two by two blocks?
///
/// Four blocks are a square of tiles of C: blocks of one row need the same tiles of A, blocks of one column
/// the same tiles of B. The kernels for any shape share them in the same way (any_shape/shape.cuh).
///
///                column 0   column 1
///     row 0      rank 0     rank 2      both need A[0]
///     row 1      rank 1     rank 3      both need A[1]
///                B[0]       B[1]
///
/// Every tile must come from global memory once. So a block loads half of the rows of a tile of A and half of
/// the rows of a tile of B, and sends each half to the blocks that need it. Write the two loads with their
/// masks, the release of a slot, and how many arrivals `empty` expects in a phase.
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

constexpr int kSide = 2, kBlocks = kSide * kSide, kSlots = 2;
constexpr int kTile = 64, kHalf = kTile / kSide;  ///< rows and columns of a tile; rows of a tensor map's box
constexpr int kReaders = 2 * ladder::kWarp, kThreads = kReaders + ladder::kWarp;
using Tile = ladder::SwizzledTile<kTile, kTile>;

struct SharedStorage {
  Tile a[kSlots], b[kSlots];
  ladder::Pipeline<kSlots> pipe_lc;  ///< full: one arrival, and bytes; empty: kEmptyArrivals
};

struct TensorMaps {
  CUtensorMap a, b;
};

/// Where a block is in its cluster.
struct Place {
  int row, column;
};
__device__ inline uint32_t rank_of(Place place) { return place.row + kSide * place.column; }
__device__ inline Place my_place() {
  const int rank = static_cast<int>(ptx::cluster_block_rank());
  return {rank % kSide, rank / kSide};
}

// Read docs/concepts/clusters_and_dsmem.md and common/ptx/cluster.cuh.
// >>> yours
/// What `empty` of a block expects: an arrival from every reader of the blocks that this block sends to.
/// Those are the block itself, its neighbour in the row and its neighbour in the column.
constexpr int kEmptyArrivals = 3 * kReaders;

/// One thread of each block, when the slot is empty in all blocks that it sends to. Rows a_row .. a_row + 63
/// of maps.a are the tile of A that this block needs; the same for B.
__device__ inline void load(SharedStorage& smem, const TensorMaps& maps, int slot, int a_row, int b_row) {
  const Place me = my_place();
  ptx::Mbarrier* const full = &smem.pipe_lc.full[slot];
  const auto same_row = static_cast<uint16_t>(0b101 << me.row);
  const auto same_column = static_cast<uint16_t>(0b11 << kSide * me.column);
  const int half_a = kHalf * me.column, half_b = kHalf * me.row;
  ptx::mbarrier_arrive_expect_bytes(full, sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
  ptx::tma_load_multicast(&smem.a[slot].panels[0][half_a], &maps.a, 0, a_row + half_a, full, same_row);
  ptx::tma_load_multicast(&smem.b[slot].panels[0][half_b], &maps.b, 0, b_row + half_b, full, same_column);
}

/// Every reader, when it has read the slot by ordinary loads.
__device__ inline void release(SharedStorage& smem, int slot) {
  ptx::fence_proxy_async();  // TMA overwrites it through another proxy
  const Place me = my_place();
  ptx::mbarrier_arrive_remote_release(&smem.pipe_lc.empty[slot], rank_of(me));
  ptx::mbarrier_arrive_remote_release(&smem.pipe_lc.empty[slot], rank_of({me.row ^ 1, me.column}));
  ptx::mbarrier_arrive_remote_release(&smem.pipe_lc.empty[slot], rank_of({me.row, me.column ^ 1}));
}
// <<<

__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  const Place me = my_place();
  ladder::RingPosition<kSlots> filling;
  for (int tile = 0; tile < tiles; ++tile, filling.advance()) {
    ptx::mbarrier_wait_cluster(&smem.pipe_lc.empty[filling.slot], filling.parity ^ 1);
    load(smem, maps, filling.slot, (me.row * tiles + tile) * kTile, (me.column * tiles + tile) * kTile);
  }
}

/// y[rank] = A[row] + 16 B[column], tile after tile.
__device__ inline void read_tiles(SharedStorage& smem, float* y, int tiles) {
  float* const mine = y + rank_of(my_place()) * tiles * kTile * kTile;
  ladder::RingPosition<kSlots> reading;
  for (int tile = 0; tile < tiles; ++tile, reading.advance()) {
    const int slot = reading.slot;
    ptx::mbarrier_wait(&smem.pipe_lc.full[slot], reading.parity);
    for (int i = threadIdx.x; i < kTile * kTile; i += kReaders) {
      const float a = __bfloat162float(smem.a[slot].at(i / kTile, i % kTile));
      const float b = __bfloat162float(smem.b[slot].at(i / kTile, i % kTile));
      mine[tile * kTile * kTile + i] = a + 16 * b;
    }
    release(smem, slot);
  }
}

/// One cluster. A and B are [kSide * tiles * kTile, kTile]: the tiles of row or column 0, then those of 1.
__global__ void __launch_bounds__(kThreads)
    combine(const __grid_constant__ TensorMaps maps, float* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kEmptyArrivals);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();  // no block sends before all barriers are there
  if (threadIdx.x < kReaders)
    read_tiles(smem, y, tiles);
  else if (threadIdx.x == kReaders)
    load_tiles(smem, maps, tiles);
  ptx::cluster_sync();  // no block leaves while another may still reach it
}

inline void launch_combine(const __nv_bfloat16* a, const __nv_bfloat16* b, float* y, int tiles) {
  const int rows = kSide * tiles * kTile;
  ladder::launch(combine,
                 {.name = "multicast_grid",
                  .grid = dim3(kBlocks),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .cluster = dim3(kBlocks)},
                 TensorMaps{ladder::make_tensor_map(a, rows, kTile, kHalf, kTile),
                            ladder::make_tensor_map(b, rows, kTile, kHalf, kTile)},
                 y, tiles);
}

}  // namespace exercise
