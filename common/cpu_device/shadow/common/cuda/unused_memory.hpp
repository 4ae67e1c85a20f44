/// @file
/// Shadow of common/cuda/unused_memory.hpp: here time is no matter, so all of it is spoiled, and a host
/// function that reads it after that is named.
#pragma once
#include <cstddef>
#include <cstring>

#include "common/cpu_device/launch_progress.hpp"

namespace ladder {

inline void spoil(void* memory, size_t bytes) {
  std::memset(memory, 0xff, bytes);
  cpu_device::note_given_back(memory, bytes);
}

}  // namespace ladder
