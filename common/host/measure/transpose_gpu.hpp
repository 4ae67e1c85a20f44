/// @file
/// Transposes a matrix on the GPU. Only in the GPU build.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace ladder {

/// to[column][row] = from[row][column], both in device memory; returns when it is done.
void transpose(const __nv_bfloat16* from, int rows, int columns, __nv_bfloat16* to);

}  // namespace ladder
