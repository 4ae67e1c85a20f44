/// @file
/// Fences between memory proxies.
#pragma once

namespace ptx {

/// `fence.proxy.async.shared::cta` (PTX ISA, "membar / fence"). Ordinary accesses to shared memory that
/// happen before it are ordered before what the async proxy (wgmma, TMA) does after it. A barrier alone does
/// not order the two proxies.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace ptx
