/// @file
/// CUDA's streams, events and graphs as objects that clean up after themselves.
#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "common/cuda/error.hpp"

namespace ladder {

/// A deleter made of one of CUDA's destroy functions.
template <auto kDestroy>
struct CudaDeleter {
  template <class Pointer>
  void operator()(Pointer pointer) const {
    kDestroy(pointer);
  }
};

using Stream = std::unique_ptr<CUstream_st, CudaDeleter<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, CudaDeleter<cudaEventDestroy>>;
using Graph = std::unique_ptr<CUgraph_st, CudaDeleter<cudaGraphDestroy>>;
using GraphExec = std::unique_ptr<CUgraphExec_st, CudaDeleter<cudaGraphExecDestroy>>;

/// A stream that does not wait for the legacy default stream, as capturing needs.
inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

/// An event that takes the time when it is recorded.
inline Event make_event() {
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreate(&event));
  return Event(event);
}

/// An event that only orders, and takes no time stamp.
inline Event make_order_event() {
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

/// Milliseconds between two events that were recorded; waits for the second.
inline double elapsed_ms(const Event& begin, const Event& end) {
  float ms = 0;
  CUDA_CHECK(cudaEventSynchronize(end.get()));
  CUDA_CHECK(cudaEventElapsedTime(&ms, begin.get(), end.get()));
  return ms;
}

}  // namespace ladder
