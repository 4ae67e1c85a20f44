/// @file
/// On which multiprocessor a thread runs.
#pragma once
#include <cstdint>

namespace ptx {

/// `mov.u32 %smid` (PTX ISA, "Special Registers").
__device__ __forceinline__ uint32_t multiprocessor() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

}  // namespace ptx
