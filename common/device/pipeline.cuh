/// @file
/// The four verbs over a ring of slots, for separate roles.
#pragma once
#include <cstdint>

#include "common/ptx/mbarrier.cuh"

namespace ladder {

/// What a pipeline keeps in shared memory: for each slot a barrier that says "full" and one for "empty".
template <int kSlots>
struct Pipeline {
  ptx::Mbarrier full[kSlots], empty[kSlots];

  /// `producers` arrivals fill a slot, one where a thread expects bytes of TMA; `consumers` empty it. One
  /// thread calls it. Then come a fence_mbarrier_init and a __syncthreads, or a cluster_sync.
  __device__ __forceinline__ void init(int producers, int consumers) {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&full[slot], producers);
      ptx::mbarrier_init(&empty[slot], consumers);
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
template <int kSlots>
struct Producer {
  __device__ __forceinline__ explicit Producer(Pipeline<kSlots>& pipeline) : pipeline_(pipeline) {}

  /// Waits until the next slot is empty. On the first lap a wait for the other parity returns at once.
  __device__ __forceinline__ int producer_acquire() {
    ptx::mbarrier_wait(&pipeline_.empty[position_.slot], position_.parity ^ 1);
    return position_.slot;
  }
  /// Waits until consumers have released all slots.
  __device__ __forceinline__ void wait_until_empty() {
    for (int slot = 0; slot < kSlots; ++slot) {
      producer_acquire();
      position_.advance();
    }
  }
  /// Arrives, and announces bytes. Returns full_barrier(), which counts them: when it has, the slot is full.
  __device__ __forceinline__ ptx::Mbarrier* expect_bytes(uint32_t bytes) {
    ptx::mbarrier_arrive_expect_bytes(full_barrier(), bytes);
    return full_barrier();
  }
  __device__ __forceinline__ ptx::Mbarrier* full_barrier() { return &pipeline_.full[position_.slot]; }
  /// Goes on to the next slot; the bytes that were expected complete this one.
  __device__ __forceinline__ void producer_commit_bytes() { position_.advance(); }
  /// Arrives, once this thread's part of the slot is filled, and goes on. Only threads with `arrives` arrive:
  /// one of a warp is enough after a __syncwarp.
  __device__ __forceinline__ void producer_commit(bool arrives = true) {
    if (arrives) ptx::mbarrier_arrive(full_barrier());
    position_.advance();
  }

 private:
  Pipeline<kSlots>& pipeline_;
  RingPosition<kSlots> position_;
};

/// The consumer's end. It may wait ahead of what it releases, so wait and release have places of their own.
template <int kSlots>
struct Consumer {
  __device__ __forceinline__ explicit Consumer(Pipeline<kSlots>& pipeline) : pipeline_(pipeline) {}

  /// Skips slots that another consumer waits for and releases. This consumer must have released every
  /// slot that it waited for.
  __device__ __forceinline__ void skip(int count) {
    waited_.advance(count);
    released_.advance(count);
  }
  /// Waits until the next slot is full, and returns its number.
  __device__ __forceinline__ int consumer_wait() {
    const int slot = waited_.slot;
    ptx::mbarrier_wait(&pipeline_.full[slot], waited_.parity);
    waited_.advance();
    return slot;
  }
  /// Says that the oldest slot that was waited for has been read. Only threads with `arrives` say so: one of
  /// a warpgroup after wgmma_wait_group, as in CUTLASS (PTX does not promise it); every arrival costs.
  __device__ __forceinline__ void consumer_release(bool arrives = true) {
    if (arrives) ptx::mbarrier_arrive(&pipeline_.empty[released_.slot]);
    released_.advance();
  }
  /// Goes on to the next slot; arrivals at empty_barrier() release this one.
  __device__ __forceinline__ void next_release() { released_.advance(); }
  /// Where the oldest slot that was waited for is released.
  __device__ __forceinline__ ptx::Mbarrier* empty_barrier() { return &pipeline_.empty[released_.slot]; }

 private:
  Pipeline<kSlots>& pipeline_;
  RingPosition<kSlots> waited_, released_;
};

}  // namespace ladder
