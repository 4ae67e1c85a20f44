/// @file
/// How many blocks of a kernel the GPU holds at one time: the grid of a persistent kernel. A shadow of this
/// header answers for the CPU device.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/error.hpp"

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

/// Clusters of `blocks` blocks that are resident at once on the whole GPU. Fewer than resident_blocks /
/// blocks where the multiprocessors of a GPC are no multiple of `blocks`: a grid sized by that quotient would
/// run its last clusters alone, after all others.
/// @throws CudaError if the kernel cannot run with these resources
template <class... Params>
int resident_clusters(void (*kernel)(Params...), int threads, size_t shared_bytes, int blocks) {
  if (blocks == 1) return resident_blocks(kernel, threads, shared_bytes);
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
  int clusters = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
  return clusters;
}

}  // namespace ladder
