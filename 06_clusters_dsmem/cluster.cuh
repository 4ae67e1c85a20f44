/// @file
/// Lesson 06: where a block stands in its cluster, and how a slot that two blocks fill is released.
///
/// A cluster is made of pairs of blocks, ranks 2i and 2i + 1. Those of a pair have tiles of C one below the
/// other.
#pragma once
#include "common/device/pipeline.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson06 {

/// This block's place in its pair, and its pair's in the cluster, which says what part of K the pair has.
__device__ __forceinline__ int block_m() { return static_cast<int>(ptx::cluster_block_rank()) % 2; }
__device__ __forceinline__ int block_k() { return static_cast<int>(ptx::cluster_block_rank()) / 2; }

/// By one thread of a warpgroup in each block of a pair. An arrival speaks for four warps (as in CUTLASS) and
/// is relaxed (it is not there), beside waits of a block's scope: PTX promises neither.
template <int kSlots>
__device__ __forceinline__ void release_in_both(ladder::Consumer<kSlots>& pipe) {
  const uint32_t thread = threadIdx.x % ladder::kWarpgroup, first = ptx::cluster_block_rank() & ~1u;
  if (thread < 2) ptx::mbarrier_arrive_remote(pipe.empty_barrier(), first + thread);
  pipe.next_release();
}

}  // namespace lesson06
