/// @file
/// TMA stores of boxes of a tensor with three dimensions (sm_90). See tma.cuh, which has those with two.
#pragma once
#include <cuda.h>

#include "common/ptx/shared_address.cuh"

namespace ptx {

/// `cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group`: as tma_store(); `outer` is the coordinate in
/// the dimension with the largest index.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, const void* from, int column, int row,
                                          int outer) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(column), "r"(row), "r"(outer)
      : "memory");
#else
  __trap();
#endif
}

}  // namespace ptx
