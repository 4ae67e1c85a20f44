/// @file
/// Shadow of common/cuda/kernel_resources.hpp: the CPU device has shared memory, but no registers to count.
#pragma once
#include <string>

#include "common/cuda/resources.hpp"

namespace ladder {

template <class... Params>
Resources kernel_resources(void (*)(Params...), int, size_t shared_bytes, const std::string& tile) {
  return {tile, shared_bytes};
}

}  // namespace ladder
