/// @file
/// The four verbs over a ring of slots, for roles that run apart and for copies by TMA.
#pragma once
#include <cstdint>

#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/trace.cuh"

namespace ladder {

/// What a pipeline keeps in shared memory: for each slot a barrier that says "full" and one for "empty".
template <int kSlots>
struct Pipeline {
  ptx::Mbarrier full[kSlots], empty[kSlots];

  /// One thread of the block prepares the barriers; then a fence_mbarrier_init, then a __syncthreads.
  /// @param producers arrivals that fill a slot: 1 where a thread expects bytes of TMA
  /// @param consumers arrivals that empty it. @param first_index of the slots, in reports
  __device__ __forceinline__ void init(int producers, int consumers,
                                       ptx::CallSite caller = ptx::CallSite::current()) {
    const char *full_name = "full", *empty_name = "empty";
    const int first_index = 0;
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&full[slot], producers, caller);
      ptx::mbarrier_init(&empty[slot], consumers, caller);
      ptx::mbarrier_name(&full[slot], full_name, first_index + slot);
      ptx::mbarrier_name(&empty[slot], empty_name, first_index + slot);
      trace::name_barrier(&full[slot], full_name, first_index + slot);
      trace::name_barrier(&empty[slot], empty_name, first_index + slot);
    }
  }
};

/// A place in the ring: the slot, and the parity of the phase that its barriers are in on this lap.
template <int kSlots>
struct RingPosition {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == kSlots) {
      slot = 0;
      parity ^= 1;
    }
  }
  /// advance(), `count` times.
  __device__ __forceinline__ void advance(int count) {
    const int laps = (slot + count) / kSlots;
    slot = (slot + count) % kSlots;
    parity ^= laps & 1;
  }
};

/// The producer's end of a pipeline; every thread that produces has its own.
template <int kRingSlots>
class Producer {
 public:
  static constexpr int kSlots = kRingSlots;

  __device__ __forceinline__ explicit Producer(Pipeline<kRingSlots>& pipeline) : pipeline_(pipeline) {}

  /// Waits until the next slot is empty, and says which it is. On the first lap all are: a wait for the other
  /// parity returns at once.
  __device__ __forceinline__ int producer_acquire() {
    {
      const trace::Span span(&pipeline_.empty[position_.slot]);
      ptx::mbarrier_wait(&pipeline_.empty[position_.slot], position_.parity ^ 1);
    }
    filling_.start();
    return position_.slot;
  }
  /// The slot is full when this many bytes have landed, and counted themselves at the barrier that is
  /// returned.
  __device__ __forceinline__ ptx::Mbarrier* expect_bytes(uint32_t bytes) {
    ptx::mbarrier_arrive_expect_bytes(barrier(), bytes);
    return barrier();
  }
  __device__ __forceinline__ ptx::Mbarrier* barrier() { return &pipeline_.full[position_.slot]; }
  /// Goes on to the next slot; the bytes that were expected complete this one.
  __device__ __forceinline__ void producer_commit_bytes() {
    filling_.stop(trace::Event::load);
    position_.advance();
  }
  /// Says that this thread has filled its part of the slot, and goes on.
  __device__ __forceinline__ void producer_commit() {
    ptx::mbarrier_arrive(barrier());
    filling_.stop(trace::Event::stage);
    position_.advance();
  }

 private:
  Pipeline<kSlots>& pipeline_;
  RingPosition<kSlots> position_;
  [[no_unique_address]] trace::Stopwatch filling_;
};

/// The consumer's end. A slot may be released later than the next one is waited for: wait and release keep
/// their own places.
template <int kRingSlots>
class Consumer {
 public:
  static constexpr int kSlots = kRingSlots;

  __device__ __forceinline__ explicit Consumer(Pipeline<kRingSlots>& pipeline) : pipeline_(pipeline) {}

  /// Leaves out slots that another consumer waits for and releases. All that this one waited for must have
  /// been released before.
  __device__ __forceinline__ void skip(int count) {
    waited_.advance(count);
    released_.advance(count);
  }
  /// Waits until the next slot is full, and says which it is.
  __device__ __forceinline__ int consumer_wait() {
    const int slot = waited_.slot;
    const trace::Span span(&pipeline_.full[slot]);
    ptx::mbarrier_wait(&pipeline_.full[slot], waited_.parity);
    waited_.advance();
    return slot;
  }
  /// Says that the oldest slot that was waited for has been read. Only threads with `arrives` say so: one of
  /// a warpgroup is enough after wgmma_wait_group, and every arrival costs.
  __device__ __forceinline__ void consumer_release(bool arrives = true) {
    if (arrives) ptx::mbarrier_arrive(&pipeline_.empty[released_.slot]);
    released_.advance();
  }
  /// Says so to the producer in block `rank` of the cluster, which fills this slot too. Threads with
  /// `arrives` may name different blocks.
  __device__ __forceinline__ void consumer_release_in(uint32_t rank, bool arrives) {
    if (arrives) ptx::mbarrier_arrive_remote(&pipeline_.empty[released_.slot], rank);
    released_.advance();
  }

 private:
  Pipeline<kSlots>& pipeline_;
  RingPosition<kSlots> waited_, released_;
};

}  // namespace ladder
