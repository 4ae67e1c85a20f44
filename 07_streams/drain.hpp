/// @file
/// Cleaning up behind an error that is on its way already: what fails now is not reported.
#pragma once
#include <cuda_runtime.h>

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

}  // namespace lesson07
