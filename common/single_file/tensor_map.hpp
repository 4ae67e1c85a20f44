/// @file
/// Tensor maps: what TMA needs to know of a matrix.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "common/cuda/error.hpp"

namespace ladder {

/// The driver's function that encodes tensor maps. It is looked up at run time, so that the program needs no
/// -lcuda.
inline auto tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                              &found));
#else
  CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || !function)
    throw std::runtime_error("the driver must be of CUDA 12 or later: it lacks cuTensorMapEncodeTiled");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

/// Describes the row-major bf16 matrix [rows, columns] at `matrix` for copies of boxes of box_rows x
/// box_columns, laid out in shared memory with the 128-byte swizzle (box_columns is at most 64, one panel of
/// a SwizzledTile).
inline CUtensorMap make_tensor_map(const __nv_bfloat16* matrix, int rows, int columns, int box_rows,
                                   int box_columns) {
  static const auto encode = tensor_map_encoder();
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
  // A miss in L2 brings two cache lines instead of one where rows begin at lines. Where they straddle lines,
  // each of the two requests for a row would do so: measured, 10 to 15 % of the time of a product.
  const bool straddles = stride[0] % 128 != 0;
  const CUtensorMapL2promotion promotion =
      straddles ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const CUresult result =
      encode(&aligned.map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), extent,
             stride, box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("the driver refuses a tensor map: error " + std::to_string(result));
  return aligned.map;
}

}  // namespace ladder
