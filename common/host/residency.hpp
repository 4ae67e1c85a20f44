/// @file
/// How many blocks of a kernel the GPU holds at one time: the grid of a persistent kernel. A shadow of this
/// header answers for the CPU device.
#pragma once
#include <cuda_runtime.h>

#include "common/host/error.hpp"

namespace ladder {

/// Blocks that are resident at once on the whole GPU.
/// @throws CudaError if the kernel cannot run with these resources
template <class... Params>
int resident_blocks(void (*kernel)(Params...), int threads, size_t shared_bytes) {
  int device = 0, multiprocessors = 0, blocks = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  return multiprocessors * blocks;
}

}  // namespace ladder
