/// @file
/// The one problem that every lesson solves.
#pragma once
#include <cuda_bf16.h>

namespace ladder {

/// C = A · B with fp32 accumulation. All three matrices are row-major bf16 in device memory:
/// A is [m, k], B is [k, n], C is [m, n], without padding between rows. Some kernels multiply A by several
/// B, which lie one behind the other (Shape::b_matrices).
struct Gemm {
  const __nv_bfloat16* a = nullptr;
  const __nv_bfloat16* b = nullptr;
  __nv_bfloat16* c = nullptr;
  int m = 0, n = 0, k = 0;
  /// A vector of n elements, for kernels that add it to every row of C before they round.
  const __nv_bfloat16* bias = nullptr;

  /// Floating-point operations: a multiply and an add for each of m · n · k products.
  double flops() const { return 2.0 * m * n * k; }
};

}  // namespace ladder
