/// @file
/// The tensor maps that the tests of the CPU device give to TMA.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

#include <catch2/catch_test_macros.hpp>

namespace cpu_device::test {

/// Of the row-major bf16 matrix [rows, columns] at `matrix`, for copies of box_rows x box_columns. Initialise
/// a map with it and do not assign: under AddressSanitizer g++ 12 puts the temporary at no multiple of 64.
inline CUtensorMap map_of(void* matrix, int rows, int columns, int box_rows,
                          CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B, int box_columns = 64) {
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {extents[0] * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)},
                   steps[] = {1, 1};
  CUtensorMap map;
  REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, extents, strides, box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

}  // namespace cpu_device::test
