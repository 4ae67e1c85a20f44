/// @file
/// Errors of the CUDA runtime become exceptions.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace ladder {

/// A call of CUDA failed; what() says which, where and why.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws CudaError unless the code is cudaSuccess
inline void check(cudaError_t code, const char* call, int line) {
  if (code == cudaSuccess) return;
  throw CudaError("line " + std::to_string(line) + ": " + call + " failed: " + cudaGetErrorString(code));
}

}  // namespace ladder

/// Throws ladder::CudaError unless `call` returns cudaSuccess.
#define CUDA_CHECK(call) ::ladder::check((call), #call, __LINE__)
