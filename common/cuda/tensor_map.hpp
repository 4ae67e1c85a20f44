/// @file
/// Tensor maps: what TMA needs to know of a matrix.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

#include <string>

namespace ladder {

/// What L2 fetches from memory when a row of a box misses: two cache lines at a time, but one where rows of
/// so many bf16 straddle lines. There each row takes two requests, and two lines for each were measured to
/// cost 10 to 15 % of a product's time.
CUtensorMapL2promotion l2_promotion(int columns);

/// Describes the row-major bf16 matrix [rows, columns] at `matrix` for copies of boxes of box_rows x
/// box_columns, laid out in shared memory with the 128-byte swizzle (box_columns is at most 64, one panel of
/// a SwizzledTile).
/// @throws std::invalid_argument with the words of tensor_map_complaint() if there are any
/// @throws std::runtime_error if the driver is too old to encode tensor maps, or refuses one that keeps its
/// rules
CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                            int box_columns);

/// The maps of a product's matrices. A kernel takes them as one `__grid_constant__` parameter, as TMA reads
/// them at their address. A kernel that stores C without TMA leaves out `c`.
struct TensorMaps {
  CUtensorMap a, b, c = {};
};

/// Which argument of make_tensor_map() breaks which rule of cuTensorMapEncodeTiled (CUDA Driver API, "Tensor
/// Map Object Management"): where the matrix and its rows begin, its extents, those of the box, and the
/// swizzle. Empty if all are kept.
std::string tensor_map_complaint(const void* matrix, int rows, int columns, int box_rows, int box_columns);

}  // namespace ladder
