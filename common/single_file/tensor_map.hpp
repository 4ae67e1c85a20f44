/// @file
/// Tensor maps: what TMA needs to know of a matrix.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/cuda/error.hpp"

namespace ladder {

/// The driver's function that encodes tensor maps; asked for at run time, it needs no -lcuda.
inline auto tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                              &found));
#else
  CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  CUDA_CHECK(found == cudaDriverEntryPointSuccess ? cudaSuccess : cudaErrorInsufficientDriver);
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

/// The maps of a product's matrices: one `__grid_constant__` parameter, since TMA takes their address.
struct TensorMaps {
  CUtensorMap a, b, c;
};

/// Describes the row-major bf16 matrix [rows, columns] for copies of boxes of box_rows x box_columns, laid
/// out in shared memory with the 128-byte swizzle (box_columns is at most 64, one panel of a SwizzledTile).
inline CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                                   int box_columns) {
  static const auto encode = tensor_map_encoder();
  // The innermost dimension comes first; strides are in bytes and leave it out.
  const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {extent[0] * sizeof *matrix};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t element_stride[] = {1, 1};
  // A miss in L2 brings two cache lines, but one where rows straddle lines: each row then takes two requests.
  const CUtensorMapL2promotion promotion =
      stride[0] % 128 != 0 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  CUtensorMap maps[1];  // not one to return: g++ 12 does not always align that to 64 bytes
  const auto encoding = static_cast<cudaError_t>(
      encode(maps, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), extent, stride,
             box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, promotion,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  CUDA_CHECK(encoding);
  return maps[0];
}

}  // namespace ladder
