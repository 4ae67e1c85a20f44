/// @file
/// Turns of two warpgroups at the tensor cores.
#pragma once
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson05::attention {

// [turn]
/// Which warpgroup may start products: barrier 1 is for warpgroup 0, barrier 2 for the other. A turn is
/// complete with the arrivals of both: one waits, the other has passed it on.
struct Turn {
  int me = ladder::warpgroup_index();
  /// Before the first turn, which is that of warpgroup 0.
  __device__ __forceinline__ void begin() const {
    if (me == 1) pass();
  }
  /// Until the other warpgroup has passed the turn on.
  __device__ __forceinline__ void wait() const { ptx::named_barrier_sync(1 + me, 2 * ladder::kWarpgroup); }
  /// Lets the other warpgroup start its products; never waits.
  __device__ __forceinline__ void pass() const { ptx::named_barrier_arrive(2 - me, 2 * ladder::kWarpgroup); }
  /// Behind the last turn, where nobody waits for warpgroup 1 any more.
  __device__ __forceinline__ void end() const {
    if (me == 0) pass();
  }
};
// [turn]

}  // namespace lesson05::attention
