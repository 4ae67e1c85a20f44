/// @file
/// Two sums as two bf16.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

namespace ladder {

/// Two floats, rounded to bf16, the first in the low half.
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

}  // namespace ladder
