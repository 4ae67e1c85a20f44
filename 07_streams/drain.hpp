/// @file
/// Cleaning up behind an error that is on its way already: what fails now is not reported.
#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "common/cuda/cuda_handles.hpp"

namespace lesson07 {

/// Calls `clean_up`, also from a destructor. The CPU device reports broken rules by exceptions.
template <class CleanUp>
void quietly(const CleanUp& clean_up) {
  try {
    clean_up();
  } catch (...) {
  }
}

/// Waits until nothing of the stream is in flight, and forgets what failed.
/// @returns what failed
inline cudaError_t drain(cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  quietly([&] { error = cudaStreamSynchronize(stream); });
  cudaGetLastError();
  return error;
}

/// A stream whose work has ended when it goes. Declared behind the buffers that this work uses, it goes
/// before them.
struct DrainAndDestroy {
  void operator()(cudaStream_t stream) const {
    drain(stream);
    cudaStreamDestroy(stream);
  }
};
using DrainedStream = std::unique_ptr<CUstream_st, DrainAndDestroy>;
inline DrainedStream make_drained_stream() { return DrainedStream(ladder::make_stream().release()); }

}  // namespace lesson07
