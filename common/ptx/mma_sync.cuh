/// @file
/// The warp-wide tensor-core instructions of sm_80 and later. Every function is executed by all 32 lanes of a
/// warp.
#pragma once
#include <cstdint>

#include "common/ptx/shared_address.cuh"

namespace ptx {

/// `ldmatrix.sync.aligned.m8n8.x4.shared.b16` (PTX ISA, "ldmatrix"): four 8x8 matrices of 16-bit elements.
/// Lane i passes the 16-byte aligned address of row i % 8 of matrix i / 8. Lane t receives in r[j] elements
/// 2*(t%4) and 2*(t%4)+1 of row t/4 of matrix j.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16`: the same, every matrix transposed on the way.
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// `mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32` (PTX ISA, "mma"): d += a · b, a [16, 16], b [16, 8],
/// d [16, 8]. Lane t holds d of rows t/4 and t/4 + 8, columns 2*(t%4) and 2*(t%4)+1: d[0], d[1] of the upper
/// row, d[2], d[3] of the lower.
__device__ __forceinline__ void mma_m16n8k16(float* d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  __trap();  // Turing has other shapes, and no bf16
#endif
}

}  // namespace ptx
