/// @file
/// Shadow of common/cuda/unused_memory.hpp: here time is no matter, so all of it is spoiled.
#pragma once
#include <cstddef>
#include <cstring>

namespace ladder {

inline void spoil(void* memory, size_t bytes) { std::memset(memory, 0xff, bytes); }

}  // namespace ladder
