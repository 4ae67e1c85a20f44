/// @file
/// Host memory that nobody may read any more. A shadow of this header spoils all of it on the CPU device.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

namespace ladder {

/// Writes bytes of 0xff, which are NaN as floating-point numbers of any kind, to the beginning of it: so much
/// that a check that comes too late sees it, and so little that it costs nothing.
inline void spoil(void* memory, size_t bytes) {
  constexpr size_t kMax = 4096;
  std::memset(memory, 0xff, std::min(bytes, kMax));
}

}  // namespace ladder
