/// @file
/// Exercise 01.3: how many sectors do the warps of a kernel ask for?
///
/// The kernel multiplies as lesson 01 does, but a warp covers 4 rows and 8 columns of C. Predict, before
/// anything runs, how many sectors of 32 bytes its warps request in a whole launch, one number for each
/// matrix. A warp's load or store requests each sector that its lanes touch once. There are no caches here: a
/// warp that needs a sector again requests it again.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kRows = 4, kColumns = 8;       ///< of C, that a warp computes
constexpr int kM = 8, kN = 48, kK = 20;      ///< C [M, N] = A [M, K] · B [K, N], all row-major bf16
constexpr int kPitch = 48, kWidePitch = 52;  ///< elements from a row of B to the next one: both are tried

// Read 01_naive/README.md and common/cpu_device/observe/counters.hpp.
// >>> yours
// 12 warps do 20 steps each.
constexpr int kSectorsOfA = 12 * 20 * 4;        ///< four rows, each in a sector of its own
constexpr int kSectorsOfB = 12 * 20;            ///< eight columns: half a sector
constexpr int kSectorsOfWideB = 12 * (20 + 5);  ///< in every fourth row half of it is in the next sector
constexpr int kSectorsOfC = 12 * 4;             ///< four rows, once
// <<<

/// A block is one warp. All three matrices begin at a multiple of 256 bytes.
__global__ void __launch_bounds__(kRows* kColumns)
    gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, const int pitch) {
  const int row = blockIdx.y * kRows + threadIdx.x / kColumns;
  const int column = blockIdx.x * kColumns + threadIdx.x % kColumns;
  float sum = 0;
  for (int k = 0; k < kK; ++k)
    sum += __bfloat162float(a[row * kK + k]) * __bfloat162float(b[k * pitch + column]);
  c[row * kN + column] = __float2bfloat16(sum);
}

inline void launch_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int pitch) {
  ladder::launch(
      gemm,
      {.name = "count_sectors", .grid = dim3(kN / kColumns, kM / kRows), .block = dim3(kRows * kColumns)}, a,
      b, c, pitch);
}

}  // namespace exercise
