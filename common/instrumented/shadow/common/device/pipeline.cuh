/// @file
/// Shadow of common/device/pipeline.cuh: its barriers know who initialised them, and the time in which a slot
/// is filled is measured.
#pragma once
#define Pipeline PlainPipeline
#define Producer PlainProducer
#include_next "common/device/pipeline.cuh"
#undef Pipeline
#undef Producer

#include "common/instrumented/trace.cuh"

namespace ladder {

template <int kSlots>
struct Pipeline : PlainPipeline<kSlots> {
  __device__ __forceinline__ void init(int producers, int consumers,
                                       ptx::CallSite caller = ptx::CallSite::current()) {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&this->full[slot], producers, "full", slot, caller);
      ptx::mbarrier_init(&this->empty[slot], consumers, "empty", slot, caller);
    }
  }
};

template <int kSlots>
struct Producer : PlainProducer<kSlots> {
  __device__ __forceinline__ explicit Producer(Pipeline<kSlots>& pipeline)
      : PlainProducer<kSlots>(pipeline) {}

  __device__ __forceinline__ int producer_acquire() {
    const int slot = PlainProducer<kSlots>::producer_acquire();
    filling_.start();
    return slot;
  }
  __device__ __forceinline__ void producer_commit_bytes() {
    filling_.stop(trace::Event::load);
    PlainProducer<kSlots>::producer_commit_bytes();
  }
  __device__ __forceinline__ void producer_commit(bool arrives = true) {
    PlainProducer<kSlots>::producer_commit(arrives);
    filling_.stop(trace::Event::stage);
  }

 private:
  [[no_unique_address]] trace::Stopwatch filling_;
};

}  // namespace ladder
