/// @file
/// What a kernel leaves behind of a barrier that it initialises: from where that was, the host reads the
/// barrier's name in the source.
#pragma once
#include <cstdint>

#include "common/cuda/barrier_names.hpp"
#include "common/ptx/multiprocessor.cuh"
#include "common/ptx/shared_address.cuh"

namespace ptx {

/// The line of a call, as the defaulted argument of a function that wants to know. (std::source_location
/// would do the same, but clang 14 lacks it.)
struct CallSite {
  const char* file;
  unsigned line;

  /// The line of the call whose defaulted argument this is.
  __host__ __device__ static constexpr CallSite current(const char* file = __builtin_FILE(),
                                                        unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace ptx

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
