/// @file
/// The sixteen barriers of a block (PTX ISA, "bar"); __syncthreads is number 0.
#pragma once

namespace ptx {

/// `barrier.sync`: waits until `threads` threads, a multiple of 32, have arrived at barrier `id` (1 to 15).
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// `barrier.arrive`: arrives without waiting.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ptx
