/// @file
/// Host memory that nobody may read any more, and slots that go round. A shadow of this header spoils all of
/// the memory on the CPU device, and remembers the slots.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace ladder {

/// Writes bytes of 0xff, which are NaN as floating-point numbers of any kind, to the beginning of it: so much
/// that a check that comes too late sees it, and so little that it costs nothing.
inline void spoil(void* memory, size_t bytes) {
  constexpr size_t kMax = 4096;
  std::memset(memory, 0xff, std::min(bytes, kMax));
}

/// A ring of slots of pinned memory has handed one out, or got it back. Reports of the CPU device name the
/// slot by this, and what was still queued on it; elsewhere it does nothing.
inline void note_slot_taken(const std::string& /*ring*/, int /*number*/, const void* /*memory*/) {}
inline void note_slot_given_back(const void* /*memory*/) {}

}  // namespace ladder
