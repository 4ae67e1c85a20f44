/// @file
/// Fences between memory proxies.
#pragma once

namespace ptx {

/// `fence.proxy.async.shared::cta` (PTX ISA, "membar / fence"). Ordinary accesses to shared memory that
/// happen before it are ordered before what the async proxy (wgmma, TMA) does after it. A barrier alone does
/// not order the two: so threads execute this after they have written, or have read what TMA overwrites.
__device__ __forceinline__ void fence_proxy_async() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // earlier GPUs have no async proxy
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace ptx
