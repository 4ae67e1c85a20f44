/// @file
/// Where a thread stands in its block. Blocks are one-dimensional from lesson 02 on.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/warps.hpp"

namespace ladder {

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }
/// The warp within its warpgroup, 0 to 3.
__device__ __forceinline__ int warp_in_warpgroup() {
  return static_cast<int>(threadIdx.x) / kWarp % kWarpsPerWarpgroup;
}
/// Asked once, by whole warps. The shuffle tells the compiler that all lanes have the same answer: addresses
/// and matrix descriptors that follow from it are computed once for a warp, in uniform registers, where wgmma
/// wants them.
__device__ __forceinline__ int warpgroup_index() {
  return __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
}

}  // namespace ladder
