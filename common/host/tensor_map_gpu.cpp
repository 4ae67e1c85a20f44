/// @file
/// Asks the driver to encode a tensor map. The function is looked up at run time: a program that is linked to
/// the driver does not start where there is none.
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/host/error.hpp"
#include "common/host/tensor_map.hpp"

namespace ladder {
namespace {

PFN_cuTensorMapEncodeTiled_v12000 find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                              &found));
  if (found != cudaDriverEntryPointSuccess || !function)
    throw std::runtime_error(
        "the driver does not know cuTensorMapEncodeTiled: it must be of CUDA 12 or later");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

}  // namespace

CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                            int box_columns) {
  static const auto encode = find_encoder();
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
    throw std::invalid_argument("TMA cannot describe the " + std::to_string(rows) + " x " +
                                std::to_string(columns) +
                                " matrix: rows must start at multiples of 16 bytes");
  return map;
}

}  // namespace ladder
