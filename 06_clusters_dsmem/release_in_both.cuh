/// @file
/// How a slot that two blocks fill is released.
#pragma once
#include "common/device/pipeline.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson06 {

/// By one thread of a warpgroup in each block of a pair, ranks 2i and 2i + 1. An arrival speaks for four
/// warps (as in CUTLASS) and is relaxed (it is not there), beside waits of a block's scope: PTX promises
/// neither.
template <int kSlots>
__device__ __forceinline__ void release_in_both(ladder::Consumer<kSlots>& pipe) {
  const uint32_t thread = threadIdx.x % ladder::kWarpgroup, first = ptx::cluster_block_rank() & ~1u;
  if (thread < 2) ptx::mbarrier_arrive_remote(pipe.empty_barrier(), first + thread);
  pipe.next_release();
}

}  // namespace lesson06
