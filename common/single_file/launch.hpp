/// @file
/// How a kernel is launched.
#pragma once
#include <cuda_runtime.h>

#include "common/single_file/error.hpp"

namespace ladder {

struct LaunchConfig {
  dim3 grid, block;
  size_t shared_bytes = 0;  ///< dynamic shared memory of each block
  cudaStream_t stream = nullptr;
};

/// Launches `kernel` with `args`.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, const Args&... args) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, config.shared_bytes));
  kernel<<<config.grid, config.block, config.shared_bytes, config.stream>>>(args...);
  CUDA_CHECK(cudaGetLastError());
}

/// One block for each tile, but no more than the GPU holds at one time, each with a Storage in shared memory.
template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int tiles) {
  int multiprocessors = 0, blocks = 0;  // blocks that a multiprocessor holds
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage)));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, sizeof(Storage)));
  return dim3(static_cast<unsigned>(min(tiles, multiprocessors * blocks)));
}

}  // namespace ladder
