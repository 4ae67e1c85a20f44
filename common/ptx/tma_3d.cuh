/// @file
/// TMA of boxes of one matrix among many (sm_90; PTX ISA, "cp.async.bulk.tensor"). What lies outside that
/// matrix is filled with zero when it is loaded and left alone when it is stored, even where another one
/// follows it in memory.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "common/ptx/mbarrier.cuh"

namespace ptx {

/// `cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`: as tma_load(), of
/// matrix number `matrix` of the tensor.
__device__ __forceinline__ void tma_load_3d(void* to, const CUtensorMap* map, int column, int row, int matrix,
                                            Mbarrier* full) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(full)), "r"(column), "r"(row), "r"(matrix)
      : "memory");
#else
  __trap();
#endif
}

/// `cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group`: as tma_store(), of matrix number `matrix`.
__device__ __forceinline__ void tma_store_3d(const CUtensorMap* map, const void* from, int column, int row,
                                             int matrix) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(column), "r"(row), "r"(matrix)
      : "memory");
#else
  __trap();
#endif
}

}  // namespace ptx
