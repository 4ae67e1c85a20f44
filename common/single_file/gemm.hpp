/// @file
/// The one problem that every lesson solves.
#pragma once
#include <cuda_bf16.h>

namespace ladder {

/// C = A · B with fp32 accumulation: row-major bf16 matrices in device memory, A [m, k], B [k, n], C [m, n].
struct Gemm {
  const __nv_bfloat16 *a = nullptr, *b = nullptr;
  __nv_bfloat16* c = nullptr;
  int m = 0, n = 0, k = 0;
};

}  // namespace ladder
