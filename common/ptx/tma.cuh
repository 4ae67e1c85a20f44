/// @file
/// The tensor memory accelerator (sm_90; PTX ISA, "cp.async.bulk.tensor"): one thread starts the copy of a
/// box between global and shared memory; the engine computes addresses, swizzles, and fills with zero what
/// lies outside, in the async proxy. Earlier GPUs have none: a copy is a trap there, since without it the
/// kernel would race.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "common/ptx/mbarrier.cuh"

namespace ptx {

/// `prefetch.tensormap`: brings the descriptor to the cache before the first copy needs it.
__device__ __forceinline__ void tma_prefetch(const CUtensorMap* map) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

/// `cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`: copies the box whose
/// first element is (column, row) to `to`, and counts its bytes at `full` as they land.
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap* map, int column, int row,
                                         Mbarrier* full) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // [load]
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(full)), "r"(column), "r"(row)
      : "memory");
  // [load]
#else
  __trap();
#endif
}

/// `cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster`: the
/// same copy, to the same place in every block of the cluster whose bit is set in `blocks`; each block counts
/// the bytes at its own `full`.
__device__ __forceinline__ void tma_load_multicast(void* to, const CUtensorMap* map, int column, int row,
                                                   Mbarrier* full, uint16_t blocks) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)  // elsewhere it is slow, and ptxas says so
  // [multicast]
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(full)), "r"(column), "r"(row), "h"(blocks)
      : "memory");
  // [multicast]
#else
  __trap();
#endif
}

/// `cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group`: copies a box to global memory; what lies
/// outside the tensor is left out. What threads wrote to `from` needs a fence_proxy_async before.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, const void* from, int column, int row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(from)), "r"(column), "r"(row)
               : "memory");
#else
  __trap();
#endif
}

/// `cp.async.bulk.commit_group`: closes a group over this thread's stores since the last one.
__device__ __forceinline__ void tma_store_commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  __trap();
#endif
}

/// `cp.async.bulk.wait_group.read`: waits until all but the last kInFlight groups have read their shared
/// memory, which may then be overwritten.
template <int kInFlight>
__device__ __forceinline__ void tma_store_wait_read() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kInFlight) : "memory");
#else
  __trap();
#endif
}

/// `cp.async.bulk.wait_group`: waits until all but the last kInFlight groups have been written to global
/// memory.
template <int kInFlight>
__device__ __forceinline__ void tma_store_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kInFlight) : "memory");
#else
  __trap();
#endif
}

}  // namespace ptx
