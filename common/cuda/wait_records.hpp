/// @file
/// What kernels leave behind for the host to read when a wait gives up (LADDER_BOUNDED_WAITS): which warps of
/// one block waited for which barriers.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda/barrier_names.hpp"

namespace ladder::waits {

/// A wait that gave up.
struct StuckWait {
  uint32_t happened;  ///< 0: this warp did not give up
  uint32_t address;   ///< of the barrier in shared memory
  uint32_t parity;    ///< of the phase that was waited for
};

/// Lies in host memory, because a trap takes the GPU's memory with it.
struct Report {
  static constexpr uint32_t kNotes = 256, kWarps = 32;  ///< kWarps: the most that a block has
  uint32_t limit_ms;
  uint32_t block;  ///< the first to give up
  StuckWait warps[kWarps];
  /// Where a barrier lies is the same in every block of a kernel: block 0 says so.
  BarrierNote notes[kNotes];
};

/// Tells the kernels of one source file where the report is.
using SetReport = cudaError_t (*)(Report*);

/// Called before main() by every source file whose waits are bounded.
bool add_bounded_source(SetReport set);

}  // namespace ladder::waits
