/// @file
/// How a kernel is launched in clusters of blocks.
#pragma once
#include <cuda_runtime.h>

#include "common/single_file/error.hpp"

namespace ladder {

struct LaunchConfig {
  dim3 grid, block;
  size_t shared_bytes = 0;  ///< dynamic shared memory of each block
  dim3 cluster;             ///< blocks
  cudaStream_t stream = nullptr;
};

/// Calls use(config) with the same as CUDA wants it.
template <class... Params, class Use>
void with_cuda_config(void (*kernel)(Params...), const LaunchConfig& config, const Use& use) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, config.shared_bytes));
  cudaLaunchAttribute cluster{.id = cudaLaunchAttributeClusterDimension};
  cluster.val.clusterDim = {config.cluster.x, config.cluster.y, config.cluster.z};
  use(cudaLaunchConfig_t{.gridDim = config.grid,
                         .blockDim = config.block,
                         .dynamicSmemBytes = config.shared_bytes,
                         .stream = config.stream,
                         .attrs = &cluster,
                         .numAttrs = 1});
}

template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, const Args&... args) {
  with_cuda_config(kernel, config, [&](const cudaLaunchConfig_t& cuda) {
    CUDA_CHECK(cudaLaunchKernelEx(&cuda, kernel, Params(args)...));
  });
}

/// A grid of so many clusters of `blocks` blocks, but of no more than the GPU holds at one time; each block
/// has a Storage in shared memory. The GPU may hold fewer clusters than its blocks would make, as a cluster
/// lies within one GPC.
template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int clusters, int blocks) {
  int resident = 0;
  const LaunchConfig one{
      .grid = dim3(blocks), .block = dim3(threads), .shared_bytes = sizeof(Storage), .cluster = dim3(blocks)};
  with_cuda_config(kernel, one, [&](const cudaLaunchConfig_t& cuda) {
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&resident, kernel, &cuda));
  });
  return dim3(static_cast<unsigned>(min(clusters, resident) * blocks));
}

}  // namespace ladder
