/// @file
/// A kernel for experiment `sharing`: it needs little of a multiprocessor, and each block notes where and
/// when it ran.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "07_streams/experiments/sharing.hpp"
#include "common/ptx/multiprocessor.cuh"
#include "common/ptx/timer.cuh"

namespace lesson07 {

/// Every thread computes a chain of `steps` multiply-adds, each of which waits for the one before: the
/// arithmetic units are idle most of the time, and another block on the same multiprocessor can use them.
/// @param records one for each block
/// @param sums one for each block, so that the arithmetic is not in vain
__global__ void multiply_add_chain(BlockRecord* records, float* sums, int steps) {
  const uint64_t begin = ptx::globaltimer_ns();
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < steps; ++i) x = x * 0.5f + 1.f;
  __syncthreads();
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = x;
    records[blockIdx.x] = {begin, ptx::globaltimer_ns(), ptx::multiprocessor()};
  }
}

}  // namespace lesson07
