/// @file
/// One thread of a warp (sm_90). PTX ISA, "elect.sync". Earlier GPUs take the first lane.
#pragma once
#include <cstdint>

#include "common/ptx/thread_ids.cuh"

namespace ptx {

/// `elect.sync`: true in one lane, each time the same. All lanes of the warp call it together. A comparison
/// of lane numbers elects as well, but then the compiler does not know that one thread goes on alone: it puts
/// each TMA instruction into a loop over the lanes that may be there.
__device__ __forceinline__ bool elect_one() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  uint32_t elected = 0;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(elected));
  return elected;
#else
  return ladder::lane_index() == 0;
#endif
}

}  // namespace ptx
