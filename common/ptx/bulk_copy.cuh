/// @file
/// Copies from one block's shared memory to another's (sm_90; PTX ISA, "cp.async.bulk"). No lesson uses them;
/// `ladder parts` compares them with st.async.
#pragma once
#include <cstdint>

#include "common/ptx/cluster.cuh"

namespace ptx {

/// `cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes`: one thread starts a copy from
/// this block's shared memory to the place of `to` in block `rank`, in the async proxy, which counts the
/// bytes at that block's barrier. Both places and `bytes` are multiples of 16. What threads wrote to `from`
/// needs a fence_proxy_async before.
__device__ __forceinline__ void bulk_copy_to_block(void* to, uint32_t rank, const void* from, uint32_t bytes,
                                                   Mbarrier* full) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          cluster_address(to, rank)),
      "r"(shared_address(from)), "r"(bytes), "r"(cluster_address(full, rank))
      : "memory");
#else
  __trap();
#endif
}

}  // namespace ptx
