/// @file
/// What a block of a kernel takes from the GPU.
#pragma once
#include <cstddef>
#include <string>

namespace ladder {

/// What a block of a kernel takes from the GPU. 0 is unknown: the CPU device has no registers.
struct Resources {
  std::string tile;  ///< of C, for example "128x256"
  size_t shared_bytes = 0;
  int registers = 0;  ///< of each thread, at launch
  int blocks_per_sm = 0;
};

}  // namespace ladder
