/// @file
/// Exercise 06.6: partial sums go to one block, by stores that count themselves.
///
/// The blocks of a cluster have split K. Every thread has four sums of each tile, and block 0, the leader,
/// must have the sum over all blocks. It has an inbox: a place for every thread of every other block. The
/// others send with `ptx::store_async`; the leader adds up and writes. There is one inbox and there are many
/// tiles, and a sender may be far ahead. Write what the two barriers count, and what a thread does with a
/// tile.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/thread_ids.cuh"

namespace exercise {

constexpr int kBlocks = 4, kSenders = kBlocks - 1;  ///< the sender of rank r has the place r - 1 in the inbox
constexpr int kThreads = 2 * ladder::kWarp;
constexpr uint32_t kLeader = 0;  ///< its rank

/// The same in every block. A thread can wait for a barrier of its own block only. Wait with the cluster's
/// scope for whatever comes from another block: PTX promises nothing for a narrower one, though GPUs forgive
/// it for bytes that count themselves.
struct SharedStorage {
  float4 inbox[kSenders][kThreads];  ///< the leader's is used
  ptx::Mbarrier full;                ///< the leader waits for it: all of a tile is in its inbox
  ptx::Mbarrier empty;               ///< a sender waits for it: the leader has read the tile before
};

// Read docs/concepts/clusters_and_dsmem.md and common/ptx/cluster.cuh.
// >>> yours
/// What the barriers expect in a phase, besides bytes.
constexpr int kFullArrivals = 1, kEmptyArrivals = kThreads;

/// Called by all threads of all blocks for tile 0, 1, 2, ... @returns in the leader the sum of `mine` over
/// the blocks, in the order of their ranks; elsewhere anything
__device__ inline float4 sum_of_blocks(SharedStorage& smem, float4 mine, int tile) {
  const uint32_t rank = ptx::cluster_block_rank(), parity = tile % 2;
  const int thread = threadIdx.x;
  if (rank != kLeader) {
    ptx::mbarrier_wait_cluster(&smem.empty, parity ^ 1);
    ptx::store_async(&smem.inbox[rank - 1][thread], kLeader, mine, &smem.full);
    return mine;
  }
  if (thread == 0) ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(smem.inbox));
  ptx::mbarrier_wait_cluster(&smem.full, parity);
  for (int sender = 0; sender < kSenders; ++sender) {
    const float4 sent = smem.inbox[sender][thread];
    mine.x += sent.x, mine.y += sent.y, mine.z += sent.z, mine.w += sent.w;
  }
  for (int sender = 1; sender < kBlocks; ++sender) ptx::mbarrier_arrive_remote_release(&smem.empty, sender);
  return mine;
}
// <<<

/// One cluster. x holds [kBlocks][tiles][kThreads] partial sums, y [tiles][kThreads] sums.
__global__ void __launch_bounds__(kThreads) add_up(const float4* x, float4* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&smem.full, kFullArrivals);
    ptx::mbarrier_init(&smem.empty, kEmptyArrivals);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();  // no block sends before all barriers are there
  const int thread = threadIdx.x, rank = static_cast<int>(ptx::cluster_block_rank());
  for (int tile = 0; tile < tiles; ++tile) {
    const float4 sum = sum_of_blocks(smem, x[(rank * tiles + tile) * kThreads + thread], tile);
    if (rank == kLeader) y[tile * kThreads + thread] = sum;
  }
  ptx::cluster_sync();  // no block leaves while another may still reach it
}

inline void launch_add_up(const float4* x, float4* y, int tiles) {
  ladder::launch(add_up,
                 {.name = "inbox",
                  .grid = dim3(kBlocks),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .cluster = dim3(kBlocks)},
                 x, y, tiles);
}

}  // namespace exercise
