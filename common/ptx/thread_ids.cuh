/// @file
/// Where a thread stands in its block, which has one dimension.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/warps.hpp"

namespace ladder {

__device__ __forceinline__ int lane_index() { return int(threadIdx.x) % kWarp; }
/// The warp within its warpgroup, 0 to 3.
__device__ __forceinline__ int warp_in_warpgroup() { return int(threadIdx.x) / kWarp % kWarpsPerWarpgroup; }
/// For whole warps, outside of hot loops. The shuffle tells the compiler that all lanes have the same answer:
/// what follows from it is computed once for a warp, in uniform registers, where wgmma wants addresses.
__device__ __forceinline__ int warpgroup_index() {
  return __shfl_sync(~0u, int(threadIdx.x) / kWarpgroup, 0);
}

}  // namespace ladder
