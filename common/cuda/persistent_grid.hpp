/// @file
/// The grid of a persistent kernel.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>

#include "common/cuda/residency.hpp"

namespace ladder {

/// Work for so many clusters, each of `blocks` blocks of so many threads with a Storage in shared memory: a
/// grid of one cluster for each, but of no more than the GPU holds at one time.
/// @throws CudaError if the kernel cannot run with these resources
template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int clusters, int blocks = 1) {
  const int resident = resident_clusters(kernel, threads, sizeof(Storage), blocks);
  return dim3(static_cast<unsigned>(std::min(clusters, resident) * blocks));
}

}  // namespace ladder
