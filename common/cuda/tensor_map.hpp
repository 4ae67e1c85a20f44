/// @file
/// Tensor maps: what TMA needs to know of a matrix.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

namespace ladder {

/// Describes the row-major bf16 matrix [rows, columns] at `matrix` for copies of boxes of box_rows x
/// box_columns, laid out in shared memory with the 128-byte swizzle (box_columns is at most 64, one panel of
/// a SwizzledTile).
/// @throws std::invalid_argument if TMA cannot describe it: rows must start at multiples of 16 bytes.
/// @throws std::runtime_error if the driver is too old to encode tensor maps.
CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                            int box_columns);

}  // namespace ladder
