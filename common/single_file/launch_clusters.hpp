/// @file
/// How a kernel is launched in clusters of blocks.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "common/single_file/error.hpp"

namespace ladder {

struct LaunchConfig {
  dim3 grid, block;
  size_t shared_bytes = 0;  ///< dynamic shared memory of each block
  dim3 cluster;             ///< blocks
  cudaStream_t stream = nullptr;
};

/// Converts `config` to cudaLaunchConfig_t and passes it to `use`; its attribute lives only during that call.
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

/// The grid of a persistent kernel: `clusters` clusters of `cluster_size` blocks, but at most as many as the
/// GPU can hold at once, each within one GPC. Each block has a Storage in shared memory.
template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int clusters, int cluster_size) {
  int resident = 0;
  LaunchConfig one{.block = dim3(threads), .shared_bytes = sizeof(Storage)};
  one.grid = one.cluster = dim3(cluster_size);
  with_cuda_config(kernel, one, [&](const cudaLaunchConfig_t& cuda) {
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&resident, kernel, &cuda));
  });
  if (resident == 0)
    std::fprintf(stderr, "cluster of %d blocks: this GPU has no room for one\n", cluster_size), std::exit(1);
  return dim3(static_cast<unsigned>(min(clusters, resident) * cluster_size));
}

}  // namespace ladder
