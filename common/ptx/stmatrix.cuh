/// @file
/// A warp stores accumulator fragments to shared memory (sm_90).
#pragma once
#include <cstdint>

#include "common/ptx/shared_address.cuh"

namespace ptx {

/// `stmatrix.sync.aligned.m8n8.x4.shared.b16` (PTX ISA, "stmatrix"), the inverse of ldmatrix_x4: lane i
/// passes the 16-byte aligned address of row i % 8 of matrix i / 8; r[j] of lane t goes to elements 2*(t%4)
/// and 2*(t%4)+1 of row t/4 of matrix j. Executed by all 32 lanes.
__device__ __forceinline__ void stmatrix_x4(void* row, const uint32_t (&r)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  __trap();
#endif
}

}  // namespace ptx
