/// @file
/// How many clusters of a kernel the GPU holds at one time.
#pragma once
#include <cuda_runtime.h>

#include "common/single_file/error.hpp"

namespace ladder {

/// Clusters of `blocks` blocks that are resident at once on the whole GPU. There are fewer than the resident
/// blocks divided by `blocks` where a GPC's multiprocessors cannot be divided into clusters without a rest: a
/// grid sized by that quotient would run its last clusters alone, after all others.
/// @throws CudaError if the kernel cannot run with these resources
template <class... Params>
int resident_clusters(void (*kernel)(Params...), int threads, size_t shared_bytes, int blocks) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&count, kernel, &config));
  return count;
}

}  // namespace ladder
