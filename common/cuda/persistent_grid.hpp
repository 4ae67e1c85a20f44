/// @file
/// The grid of a persistent kernel.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>

#include "common/cuda/residency.hpp"

namespace ladder {

/// As many blocks, each of so many threads with a Storage in shared memory, as the GPU holds at one time, or
/// as there are tiles.
/// @throws CudaError if the kernel cannot run with these resources
template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int tiles) {
  return dim3(static_cast<unsigned>(std::min(tiles, resident_blocks(kernel, threads, sizeof(Storage)))));
}

}  // namespace ladder
