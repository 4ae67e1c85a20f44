/// @file
/// Shadow of common/ptx/mbarrier.cuh: barriers note where they were initialised, waits are timed and bounded.
#pragma once
#define mbarrier_init mbarrier_init_unnoted
#define mbarrier_wait mbarrier_wait_unbounded
#include_next "common/ptx/mbarrier.cuh"
#undef mbarrier_init
#undef mbarrier_wait

#include "common/instrumented/barrier_notes.cuh"
#include "common/instrumented/trace.cuh"
#include "common/instrumented/wait_bound.cuh"

namespace ptx {

/// One end of a pipeline: `end` is "full" or "empty".
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, uint32_t arrivals, const char* end, int slot,
                                              CallSite caller) {
  mbarrier_init_unnoted(barrier, arrivals);
  const ladder::BarrierPlace place{barrier, caller, end, slot};
  note_for_waits(place);
  ladder::trace::note_barrier(place);
}

__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, uint32_t arrivals,
                                              CallSite caller = CallSite::current()) {
  mbarrier_init(barrier, arrivals, "", 0, caller);
}

__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, uint32_t parity) {
  const ladder::trace::Span span(barrier);
  WaitBound bound;
  while (!mbarrier_try_wait(barrier, parity)) bound.check(barrier, parity);
}

}  // namespace ptx
