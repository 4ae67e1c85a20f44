/// @file
/// The grid of a persistent kernel.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "common/cuda/residency.hpp"

namespace ladder {

/// The grid for as many pieces of work as `clusters`: one cluster for each, but no more than the GPU holds at
/// one time. A cluster is `blocks` blocks of `threads` threads, each block with a Storage in shared memory.
/// @throws CudaError if the kernel cannot run with these resources
/// @throws std::invalid_argument if the GPU has no room for a cluster of so many blocks
template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int clusters, int blocks = 1) {
  const int resident = resident_clusters(kernel, threads, sizeof(Storage), blocks);
  if (resident == 0)
    throw std::invalid_argument("cluster of " + std::to_string(blocks) +
                                " blocks: this GPU has no room for one");
  return dim3(static_cast<unsigned>(std::min(clusters, resident) * blocks));
}

}  // namespace ladder
