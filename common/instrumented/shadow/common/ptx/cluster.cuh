/// @file
/// Shadow of common/ptx/cluster.cuh: waits are bounded.
#pragma once
#define mbarrier_wait_cluster mbarrier_wait_cluster_unbounded
#include_next "common/ptx/cluster.cuh"
#undef mbarrier_wait_cluster

#include "common/instrumented/wait_bound.cuh"

namespace ptx {

__device__ __forceinline__ void mbarrier_wait_cluster(Mbarrier* barrier, uint32_t parity) {
  WaitBound bound;
  while (!mbarrier_try_wait_cluster(barrier, parity)) bound.check(barrier, parity);
}

}  // namespace ptx
