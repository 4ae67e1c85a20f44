/// @file
/// One element of a matrix in global memory.
#pragma once
#include <cuda_bf16.h>

namespace ladder {

/// The element of a row-major matrix [rows, columns], or zero outside it: zeros add nothing to a sum.
__device__ __forceinline__ __nv_bfloat16 element(const __nv_bfloat16* matrix, int rows, int columns, int row,
                                                 int column) {
  const bool inside = row < rows && column < columns;
  return inside ? matrix[static_cast<size_t>(row) * columns + column] : __float2bfloat16(0);
}

}  // namespace ladder
