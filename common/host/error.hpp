/// @file
/// Errors of the CUDA runtime become exceptions that say what failed and where.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace ladder {

/// A CUDA call failed. `what()` holds the call, CUDA's own words, the file and the line.
struct CudaError : std::runtime_error {
  CudaError(cudaError_t code, const char* call, const char* file, int line)
      : std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(code) + " (" + file + ":" +
                           std::to_string(line) + ")"),
        code(code) {}
  cudaError_t code;
};

inline void check(cudaError_t code, const char* call, const char* file, int line) {
  if (code != cudaSuccess) throw CudaError(code, call, file, line);
}

}  // namespace ladder

/// Throws ladder::CudaError unless `call` returns cudaSuccess.
#define CUDA_CHECK(call) ::ladder::check((call), #call, __FILE__, __LINE__)
