/// @file
/// Errors of the CUDA runtime become exceptions that say what failed and where.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace ladder {

/// What kernels have said about why they stopped, or the CPU device about why a call failed, in lines; empty
/// if nothing. Set where something knows (prepare_bounded_waits).
inline std::string (*why_kernels_stopped)() = nullptr;

/// A CUDA call failed. `what()` holds the call, CUDA's own words, the file and the line; and, in lines of
/// their own, why kernels stopped, where that is known.
struct CudaError : std::runtime_error {
  CudaError(cudaError_t code, const char* call, const char* file, int line)
      : std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(code) + " (" + file + ":" +
                           std::to_string(line) + ")" + reason()),
        code(code) {}
  cudaError_t code;

 private:
  static std::string reason() {
    const std::string why = why_kernels_stopped ? why_kernels_stopped() : "";
    return why.empty() ? "" : "\n" + why;
  }
};

/// What CUDA_CHECK calls. @throws CudaError unless `code` is cudaSuccess
inline void check(cudaError_t code, const char* call, const char* file, int line) {
  if (code != cudaSuccess) throw CudaError(code, call, file, line);
}

}  // namespace ladder

/// Throws ladder::CudaError unless `call` returns cudaSuccess.
#define CUDA_CHECK(call) ::ladder::check((call), #call, __FILE__, __LINE__)
