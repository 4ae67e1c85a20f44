/// @file
/// A chunk: eight neighbouring bf16 elements of a row, 16 bytes, which one instruction loads or stores.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/pack_bf16.cuh"

namespace ladder {

/// Loads the chunk at `source`, a multiple of 16 bytes, and converts it.
__device__ __forceinline__ void load_chunk(const __nv_bfloat16* source, float (&elements)[8]) {
  const uint4 chunk = *reinterpret_cast<const uint4*>(source);
  const uint32_t pairs[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    elements[2 * i] = __uint_as_float(pairs[i] << 16);  // a bf16 is the upper half of an fp32
    elements[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}

/// Rounds eight numbers to bf16 and stores them as the chunk at `destination`, a multiple of 16 bytes.
__device__ __forceinline__ void store_chunk(__nv_bfloat16* destination, const float* numbers) {
  *reinterpret_cast<uint4*>(destination) =
      make_uint4(pack_bf16(numbers[0], numbers[1]), pack_bf16(numbers[2], numbers[3]),
                 pack_bf16(numbers[4], numbers[5]), pack_bf16(numbers[6], numbers[7]));
}

}  // namespace ladder
