/// @file
/// Clocks that a kernel can read.
#pragma once
#include <cstdint>

namespace ptx {

/// `mov.u64 %globaltimer` (PTX ISA, "Special Registers"): nanoseconds, the same on all multiprocessors. It
/// advances in steps of up to a microsecond.
__device__ __forceinline__ uint64_t globaltimer_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

}  // namespace ptx
