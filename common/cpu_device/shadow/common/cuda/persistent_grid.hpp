/// @file
/// Shadow of common/cuda/persistent_grid.hpp: remembers whether the blocks of a launch have more than one
/// piece.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>

#include "common/cuda/residency.hpp"

namespace ladder {

template <class Storage, class... Params>
dim3 persistent_grid(void (*kernel)(Params...), int threads, int clusters, int blocks = 1) {
  const int resident = resident_clusters(kernel, threads, sizeof(Storage), blocks);
  has_one_piece_each = clusters <= resident;
  return dim3(static_cast<unsigned>(std::min(clusters, resident) * blocks));
}

}  // namespace ladder
