/// @file
/// Barriers that count arrivals and bytes (PTX ISA, "mbarrier"). Earlier GPUs, from sm_80 on, have barriers
/// that count arrivals only; what a GPU lacks is a trap in its code.
///
/// A barrier completes a phase when all expected arrivals and all expected bytes have come, and then begins
/// the next. Phases alternate in parity, 0 first: `mbarrier_wait(b, p)` returns once the phase of parity p
/// has completed, so on a fresh barrier a wait for parity 1 returns at once.
#pragma once
#include <cstdint>

#include "common/ptx/shared_address.cuh"

namespace ptx {

/// One mbarrier object: 8 bytes of shared memory.
using Mbarrier = uint64_t;

/// `mbarrier.init.shared::cta.b64`: expects `arrivals` in every phase. One thread initialises; then, where
/// other blocks of a cluster will use it, a fence_mbarrier_init; then a barrier of all that will use it.
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, uint32_t arrivals) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
#else
  __trap();
#endif
}

/// `fence.mbarrier_init.release.cluster`: makes initialised barriers visible to the cluster. A block that is
/// alone needs none: TMA counts through the generic proxy (PTX ISA 9.3). The lessons have it anyway.
__device__ __forceinline__ void fence_mbarrier_init() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // earlier GPUs have no clusters
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/// `mbarrier.arrive.shared::cta.b64`: one arrival, a release at block scope.
__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  __trap();
#endif
}

/// `mbarrier.arrive.expect_tx.shared::cta.b64`: one arrival; the phase waits for `bytes` more.
__device__ __forceinline__ void mbarrier_arrive_expect_bytes(Mbarrier* barrier, uint32_t bytes) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
#else
  __trap();  // no barrier here counts bytes
#endif
}

/// `mbarrier.try_wait.parity.shared::cta.b64`: whether the phase of that parity has completed; may wait a
/// while for it. An acquire at block scope. GPUs before sm_90 have `mbarrier.test_wait.parity.shared.b64`,
/// which does not wait.
__device__ __forceinline__ bool mbarrier_try_wait(Mbarrier* barrier, uint32_t parity) {
  uint32_t done = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // [try_wait]
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  // [try_wait]
#elif __CUDA_ARCH__ >= 800
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
#else
  __trap();
#endif
  return done;
}

/// Waits until the phase of that parity, the current one or the one before it, has completed.
__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) continue;
}

}  // namespace ptx
