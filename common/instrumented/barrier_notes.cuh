/// @file
/// What a kernel leaves behind of a barrier that it initialises, for the host to read its name in the source.
#pragma once
#include <cstdint>

#include "common/cuda/barrier_names.hpp"
#include "common/instrumented/call_site.cuh"
#include "common/ptx/multiprocessor.cuh"
#include "common/ptx/shared_address.cuh"

namespace ladder {

/// A barrier, and where it was initialised.
struct BarrierPlace {
  const void* barrier;
  ptx::CallSite caller;
  const char* end;
  int slot;
};

/// Copies a text, cut off where it is too long.
template <size_t kSize>
__device__ __forceinline__ void copy_text(char (&to)[kSize], const char* from) {
  size_t length = 0;
  for (; length + 1 < kSize && from[length]; ++length) to[length] = from[length];
  to[length] = 0;
}

/// Fills in the note of a barrier.
__device__ __forceinline__ void write_note(BarrierNote& note, const BarrierPlace& place) {
  note.launch = static_cast<uint32_t>(ptx::grid_id());
  note.address = ptx::shared_address(place.barrier);
  note.line = place.caller.line;
  note.slot = place.slot;
  copy_text(note.end, place.end);
  copy_text(note.file, place.caller.file);
}

}  // namespace ladder
