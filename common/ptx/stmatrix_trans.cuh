/// @file
/// A warp stores accumulator fragments to shared memory, transposed (sm_90).
#pragma once
#include <cstdint>

#include "common/ptx/shared_address.cuh"

namespace ptx {

/// `stmatrix.sync.aligned.m8n8.x4.trans.shared.b16`: as stmatrix_x4(), but r[j] of lane t goes to
/// element t/4 of rows 2*(t%4) and 2*(t%4)+1 of matrix j.
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const uint32_t (&r)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
#else
  __trap();
#endif
}

}  // namespace ptx
