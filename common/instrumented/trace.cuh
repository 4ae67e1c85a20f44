/// @file
/// Timestamps for the timeline (`--trace`). Nothing of this is left unless LADDER_TRACE is defined, as it is
/// for the programs NN_name_traced. The headers in shadow/ call it.
///
/// A span is measured with the SM's own clock, because the global timer advances in steps of up to a
/// microsecond. Each warp notes both once, so that the clocks of different SMs can be laid over each other,
/// to about such a step; within a block they agree to the cycle.
#pragma once
#include "common/cuda/trace_records.hpp"

#include "common/instrumented/barrier_notes.cuh"

#ifdef LADDER_TRACE
#include "common/ptx/shared_address.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/timer.cuh"
#endif

namespace ladder::trace {

#ifdef LADDER_TRACE

/// Each source file with kernels has its own, set before the launch.
static __constant__ Recorder recorder;

static const bool registered = add_traced_source(
    [](const Recorder& value) { return cudaMemcpyToSymbol(recorder, &value, sizeof value); });

/// The first lane of each warp records; the host chooses among the warps of a role.
__device__ __forceinline__ bool records() {
  return blockIdx.x < recorder.blocks && lane_index() == 0 && threadIdx.x / kWarp < recorder.warps;
}

/// When a span begins. Half of the clock is enough to tell from its end, and saves a register in kernels that
/// have none to spare. Never 0.
__device__ __forceinline__ uint32_t begin_now() { return ptx::clock_cycles_low() | 1; }

/// Appends a span that ends now to the slice of this warp.
__device__ __forceinline__ void append(Event event, uint32_t detail, uint32_t begin) {
  if (!records()) return;
  const uint32_t slice = blockIdx.x * recorder.warps + threadIdx.x / kWarp;
  WarpTrace& warp = recorder.traces[slice];
  const uint32_t index = warp.count;
  if (index == 0) {
    warp.anchor_ns = ptx::globaltimer_ns();
    warp.anchor_cycles = ptx::clock_cycles();
  }
  if (index < recorder.capacity) {
    const uint64_t end = ptx::clock_cycles();
    const uint32_t length = static_cast<uint32_t>(end) - begin;
    recorder.records[size_t{slice} * recorder.capacity + index] = {event, detail, end - length, end};
  }
  warp.count = index + 1;
}

/// The host cannot know where in shared memory a barrier lies: the thread that prepares it says so.
__device__ __forceinline__ void note_barrier(const BarrierPlace& place) {
  if (blockIdx.x >= recorder.blocks) return;
  const uint32_t index = recorder.note_counts[blockIdx.x]++;
  if (index < recorder.note_capacity)
    write_note(recorder.notes[blockIdx.x * recorder.note_capacity + index], place);
}

/// A span that lasts as long as its scope.
class Span {
 public:
  __device__ __forceinline__ explicit Span(Event event) : event_(event), begin_(begin_now()) {}
  /// A wait at a barrier.
  __device__ __forceinline__ explicit Span(const void* barrier)
      : event_(Event::wait_barrier), detail_(ptx::shared_address(barrier)), begin_(begin_now()) {}
  __device__ __forceinline__ ~Span() { append(event_, detail_, begin_); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Event event_;
  uint32_t detail_ = 0;
  uint32_t begin_;
};

/// A span that begins and ends in different functions. It begins at the first start() since the last stop().
class Stopwatch {
 public:
  /// Begins the span, unless it has begun. @param begins_tile whether this is the first of a tile of C
  __device__ __forceinline__ void start(bool begins_tile = false) {
    if (!begin_) begin_ = begin_now();
    begins_tile_ = begins_tile_ || begins_tile;
  }
  /// Ends the span and records it as this event.
  __device__ __forceinline__ void stop(Event event) {
    append(event, begins_tile_, begin_);
    begin_ = 0;
    begins_tile_ = false;
  }

 private:
  uint32_t begin_ = 0;
  bool begins_tile_ = false;
};

#else

__device__ __forceinline__ void note_barrier(const BarrierPlace&) {}

struct Span {
  __device__ __forceinline__ explicit Span(Event) {}
  __device__ __forceinline__ explicit Span(const void*) {}
  __device__ __forceinline__ ~Span() {}
};

struct Stopwatch {
  __device__ __forceinline__ void start(bool = false) {}
  __device__ __forceinline__ void stop(Event) {}
};

#endif

}  // namespace ladder::trace
