/// @file
/// The sixteen barriers of a block (PTX ISA, "bar"); __syncthreads is number 0.
#pragma once
#include <cstdint>

namespace ptx {

/// `barrier.sync`: waits until `threads` threads, a multiple of 32, have arrived at barrier `id` (1 to 15).
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// `setp.ne.u32`, `barrier.red.or.pred`: as named_barrier_sync, and tells each thread whether one of them
/// said yes.
__device__ __forceinline__ bool named_barrier_or(int id, int threads, bool yes) {
  uint32_t any;
  asm volatile(
      "{\n"
      ".reg .pred mine, any;\n"
      "setp.ne.u32 mine, %3, 0;\n"
      "barrier.red.or.pred any, %1, %2, mine;\n"
      "selp.u32 %0, 1, 0, any;\n"
      "}"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"(static_cast<uint32_t>(yes))
      : "memory");
  return any != 0;
}

/// `barrier.arrive`: arrives without waiting. Turns of attention use it.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ptx
