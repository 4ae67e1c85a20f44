/// @file
/// Shadow of common/ptx/tma.cuh: waits for stores are timed.
#pragma once
#define tma_store_wait_read tma_store_wait_read_untimed
#define tma_store_wait tma_store_wait_untimed
#include_next "common/ptx/tma.cuh"
#undef tma_store_wait_read
#undef tma_store_wait

#include "common/instrumented/trace.cuh"

namespace ptx {

template <int kInFlight>
__device__ __forceinline__ void tma_store_wait_read() {
  const ladder::trace::Span span(ladder::trace::Event::store);
  tma_store_wait_read_untimed<kInFlight>();
}

template <int kInFlight>
__device__ __forceinline__ void tma_store_wait() {
  const ladder::trace::Span span(ladder::trace::Event::store);
  tma_store_wait_untimed<kInFlight>();
}

}  // namespace ptx
