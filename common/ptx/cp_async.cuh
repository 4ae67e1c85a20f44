/// @file
/// Copies that threads start and do not wait for, and how a barrier learns that they have landed (PTX ISA,
/// "cp.async" and "cp.async.mbarrier.arrive"; sm_80).
#pragma once
#include <cstdint>

#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared_address.cuh"

namespace ptx {

/// `cp.async.cg.shared.global`: starts to copy 16 bytes, past the L1 cache. Only the first `source_bytes` are
/// read; zeros follow. With 0 nothing is read, wherever `from` points.
__device__ __forceinline__ void cp_async_16(void* to, const void* from, uint32_t source_bytes) {
  // [copy]
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(source_bytes)
               : "memory");
  // [copy]
}

/// `cp.async.ca.shared.global`: starts to copy 16 bytes, through the L1 cache.
__device__ __forceinline__ void cp_async_ca_16(void* to, const void* from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // earlier GPUs have no asynchronous copies
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
#endif
}

/// `cp.async.mbarrier.arrive.noinc.shared.b64`: the barrier counts an arrival when all copies that this
/// thread has started have landed; the thread goes on at once. That arrival is one that the barrier was
/// initialised to expect. It makes nothing known but these copies: what the thread has stored itself needs an
/// mbarrier_arrive.
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(Mbarrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// `cp.async.mbarrier.arrive.shared.b64`: the same, but the phase first expects one arrival more, so that
/// this one comes on top of those that were counted. Only a planted mistake uses it.
__device__ __forceinline__ void cp_async_mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

}  // namespace ptx
