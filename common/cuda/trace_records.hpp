/// @file
/// What a traced kernel writes for the host to read: spans of the SM's clock, in a slice of memory for each
/// warp.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda/barrier_names.hpp"

namespace ladder::trace {

/// What a thread did in a span.
enum class Event : uint32_t {
  wait_barrier,  ///< at an mbarrier; detail: its address in shared memory
  wait_copies,   ///< for copies of its own
  load,          ///< filled a slot, or started the copies that do
  compute,       ///< from the start of products to the end of the wait for them; detail: 1 if a tile begins
  stage,         ///< put a finished tile where the storer takes it from
  store,         ///< stored to global memory, or waited for its stores
};

struct Record {
  Event event;
  uint32_t detail;
  uint64_t begin, end;  ///< cycles of this SM
};

/// The slice of one warp. Only its first lane writes.
struct WarpTrace {
  uint32_t count;          ///< of spans, also of those that found no room
  uint64_t anchor_cycles;  ///< the SM's clock and the global timer, read together before the first span
  uint64_t anchor_ns;
};

/// Where the spans go. Without blocks nothing is recorded.
struct Recorder {
  uint32_t blocks = 0;              ///< the first so many are recorded
  uint32_t warps = 0;               ///< slices of a block
  uint32_t capacity = 0;            ///< spans of a slice
  uint32_t note_capacity = 0;       ///< notes of a block
  WarpTrace* traces = nullptr;      ///< [blocks][warps]
  Record* records = nullptr;        ///< [blocks][warps][capacity]
  uint32_t* note_counts = nullptr;  ///< [blocks]
  BarrierNote* notes = nullptr;     ///< of barriers: [blocks][note_capacity]
};

/// Hands a recorder to the kernels of one source file.
using SetRecorder = cudaError_t (*)(const Recorder&);

/// Called before main() by every source file whose kernels are traced.
bool add_traced_source(SetRecorder set);

}  // namespace ladder::trace
