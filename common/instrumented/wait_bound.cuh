/// @file
/// An end to waits at an mbarrier that nobody completes. Nothing of this is left unless LADDER_BOUNDED_WAITS
/// is defined, as it is in Debug builds. The headers in shadow/ call it.
///
/// A wait that has lasted too long writes who waits for what to host memory and traps, so that the program
/// ends with a sentence (common/cuda/bounded_waits.hpp) where it would hang. It does not call printf: in a
/// kernel that calls a function ptxas serialises wgmma (C7510), and another kernel would be watched.
///
/// The bound takes registers and branches. In kernels with few registers left ptxas serialises wgmma even so
/// (C7518), or puts in waits for it (C7517), which Debug builds allow.
#pragma once
#include <cstdint>

#include "common/instrumented/barrier_notes.cuh"

#ifdef LADDER_BOUNDED_WAITS
#include "common/cuda/wait_records.hpp"
#include "common/cuda/warps.hpp"
#include "common/ptx/shared_address.cuh"
#include "common/ptx/timer.cuh"

#ifndef LADDER_WAIT_LIMIT_MS
#define LADDER_WAIT_LIMIT_MS 2000
#endif
#endif

namespace ptx {

#ifdef LADDER_BOUNDED_WAITS

constexpr uint32_t kWaitLimitMs = LADDER_WAIT_LIMIT_MS;
/// Between giving up and the trap, which ends all blocks: time for the other warps to give up as well.
constexpr uint32_t kGraceMs = 100;
constexpr uint32_t kNsPerMs = 1'000'000;
static_assert(kWaitLimitMs + kGraceMs < UINT32_MAX / kNsPerMs, "the lower half of the timer starts again");

/// Each source file with kernels has its own.
static __device__ ladder::waits::Report* wait_report;
static __device__ uint32_t reporting_block;  ///< and one more; 0: none yet

static const bool waits_are_bounded = ladder::waits::add_bounded_source(
    [](ladder::waits::Report* report) { return cudaMemcpyToSymbol(wait_report, &report, sizeof report); });

/// By the thread that prepares the barrier. The place of its note follows from its address; of two barriers
/// with the same place, the later has its note there.
__device__ __forceinline__ void note_for_waits(const ladder::BarrierPlace& place) {
  if (blockIdx.x > 0 || !wait_report) return;
  const uint32_t index = shared_address(place.barrier) / sizeof(uint64_t) % wait_report->kNotes;
  ladder::write_note(wait_report->notes[index], place);
}

/// One wait, from its first attempt that failed.
class WaitBound {
 public:
  /// After an attempt that failed. Of the threads of a warp, which wait for the same, the last to write
  /// speaks.
  __device__ __forceinline__ void check(const void* barrier, uint32_t parity) {
    const uint32_t now = globaltimer_low_ns();
    if (begin_ == 0) begin_ = (now - 1) | 1;  // neither 0 nor later than now
    if (now - begin_ < kWaitLimitMs * kNsPerMs) return;
    const uint32_t me = blockIdx.x + 1, first = atomicCAS(&reporting_block, 0, me);
    if (first == 0 || first == me) {
      wait_report->limit_ms = kWaitLimitMs;
      wait_report->block = blockIdx.x;
      wait_report->warps[threadIdx.x / ladder::kWarp] = {1, shared_address(barrier), parity};
      __threadfence_system();
    }
    while (globaltimer_low_ns() - begin_ < (kWaitLimitMs + kGraceMs) * kNsPerMs) __nanosleep(1000);
    __trap();
  }

 private:
  uint32_t begin_ = 0;
};

#else

__device__ __forceinline__ void note_for_waits(const ladder::BarrierPlace&) {}

struct WaitBound {
  __device__ __forceinline__ void check(const void*, uint32_t) {}
};

#endif

}  // namespace ptx
