/// @file
/// Clocks that a kernel can read.
#pragma once
#include <cstdint>

namespace ptx {

/// `mov.u64 %globaltimer` (PTX ISA, "Special Registers"): nanoseconds. Measured, and not promised by
/// PTX: all multiprocessors have the same, and it advances in steps of up to a microsecond.
__device__ __forceinline__ uint64_t globaltimer_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// `mov.u32 %globaltimer_lo`: the lower half of the same, which starts again every 4.3 seconds.
__device__ __forceinline__ uint32_t globaltimer_low_ns() {
  uint32_t now;
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(now));
  return now;
}

/// `mov.u64 %clock64` (PTX ISA, "Special Registers"): cycles of this multiprocessor.
__device__ __forceinline__ uint64_t clock_cycles() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

/// `mov.u32 %clock`: the lower half of the same counter.
__device__ __forceinline__ uint32_t clock_cycles_low() {
  uint32_t now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  return now;
}

}  // namespace ptx
