/// @file
/// Describes matrices to TMA.
#include "common/cuda/tensor_map.hpp"

#include <cuda_runtime.h>
#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/cuda/tensor_map_encoder.hpp"

namespace ladder {

std::string tensor_map_complaint(const void* matrix, int rows, int columns, int box_rows, int box_columns) {
  constexpr int kAlignment = 16, kMaxBox = 256, kSwizzleBytes = 128, kElementBytes = sizeof(__nv_bfloat16);
  const struct {
    const char* name;
    int value;
    bool of_box;
  } extents[] = {{"rows", rows, false},
                 {"columns", columns, false},
                 {"box_rows", box_rows, true},
                 {"box_columns", box_columns, true}};
  for (const auto& [name, value, of_box] : extents) {
    if (value < 1) return fmt::format("{} = {}: must be at least 1", name, value);
    if (of_box && value > kMaxBox) return fmt::format("{} = {}: must be at most {}", name, value, kMaxBox);
  }
  if (!matrix) return "matrix is a null pointer";
  if (const auto past = reinterpret_cast<uintptr_t>(matrix) % kAlignment)
    return fmt::format("matrix begins {} bytes past a multiple of {} bytes: must begin at one", past,
                       kAlignment);
  // int64_t: 2^31 columns have more bytes than an int counts.
  if (const int64_t row_bytes = int64_t{columns} * kElementBytes; row_bytes % kAlignment)
    return fmt::format("columns = {}: a row has {} bytes, and the next must begin at a multiple of {}",
                       columns, row_bytes, kAlignment);
  const int box_bytes = box_columns * kElementBytes;
  if (box_bytes % kAlignment)
    return fmt::format("box_columns = {}: a row of the box has {} bytes: must be a multiple of {}",
                       box_columns, box_bytes, kAlignment);
  if (box_bytes > kSwizzleBytes)
    return fmt::format(
        "box_columns = {}: a row of the box has {} bytes: must be at most {} with that swizzle", box_columns,
        box_bytes, kSwizzleBytes);
  return "";
}

CUtensorMapL2promotion l2_promotion(int columns) {
  const bool straddles = size_t(columns) * sizeof(__nv_bfloat16) % 128 != 0;
  return straddles ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
}

CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                            int box_columns) {
  static const TensorMapEncoder encode = tensor_map_encoder();
  // The innermost dimension comes first; strides are in bytes and leave it out.
  const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t element_stride[] = {1, 1};
  // Not the result itself: for that the caller's compiler chooses the place, and g++ 12 does not always align
  // it to the 64 bytes that the driver asks for.
  struct {
    CUtensorMap map;
  } aligned;
  const CUresult result =
      encode(&aligned.map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), extent,
             stride, box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             l2_promotion(columns), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return aligned.map;
  const std::string what = fmt::format("TMA cannot describe the {} x {} matrix: ", rows, columns);
  const std::string complaint = tensor_map_complaint(matrix, rows, columns, box_rows, box_columns);
  if (!complaint.empty()) throw std::invalid_argument(what + complaint);
  throw std::runtime_error(fmt::format("{}the driver says: {} (error {})", what,
                                       cudaGetErrorString(static_cast<cudaError_t>(result)),
                                       static_cast<int>(result)));
}

}  // namespace ladder
