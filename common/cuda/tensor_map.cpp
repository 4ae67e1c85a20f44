/// @file
/// Describes matrices to TMA.
#include "common/cuda/tensor_map.hpp"

#include <fmt/core.h>
#include <stdexcept>
#include <string>

#include "common/cuda/tensor_map_encoder.hpp"

namespace ladder {

CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                            int box_columns) {
  static const TensorMapEncoder encode = tensor_map_encoder();
  // The innermost dimension comes first; strides are in bytes and leave it out.
  const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t element_stride[] = {1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), extent, stride,
             box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::invalid_argument(fmt::format(
        "TMA cannot describe the {} x {} matrix: rows must start at multiples of 16 bytes", rows, columns));
  return map;
}

}  // namespace ladder
