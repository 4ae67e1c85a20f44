/// @file
/// Shadow of common/cuda/unused_memory.hpp: here time is no matter, so all of it is spoiled, and a host
/// function that reads it after that is named, as are slots that go back too early.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>

#include "common/cpu_device/launch_progress.hpp"

namespace ladder {

inline void spoil(void* memory, size_t bytes) {
  cpu_device::spoils_what_it_gives_back = true;
  std::memset(memory, 0xff, bytes);
  cpu_device::spoils_what_it_gives_back = false;
  cpu_device::note_given_back(memory, bytes);
}

inline void note_slot_taken(const std::string& ring, int number, const void* memory) {
  cpu_device::note_slot_taken(ring, number, memory);
}
inline void note_slot_given_back(const void* memory) { cpu_device::note_slot_given_back(memory); }

}  // namespace ladder
