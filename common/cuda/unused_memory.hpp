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

/// The ring has handed out this slot of pinned memory. Reports of the CPU device name the slot by this;
/// elsewhere it does nothing.
inline void note_slot_taken(const std::string& /*ring*/, int /*number*/, const void* /*memory*/) {}
/// The slot has come back to its ring. The CPU device says what was still queued on it.
inline void note_slot_given_back(const void* /*memory*/) {}

}  // namespace ladder
