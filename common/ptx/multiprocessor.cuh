/// @file
/// Which multiprocessor a thread runs on, and in which launch.
#pragma once
#include <cstdint>

namespace ptx {

/// `mov.u32 %smid` (PTX ISA, "Special Registers"), which PTX lets change while a thread runs.
__device__ __forceinline__ uint32_t multiprocessor() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

/// `mov.u64 %gridid`: differs from launch to launch.
__device__ __forceinline__ uint64_t grid_id() {
  uint64_t id;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(id));
  return id;
}

}  // namespace ptx
