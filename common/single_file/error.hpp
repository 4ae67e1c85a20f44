/// @file
/// What becomes of a call of CUDA that fails.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace ladder {

/// Ends the program, with a line that says where and why, unless the code is cudaSuccess.
inline void check(cudaError_t code, const char* call, int line) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s failed: %s\n", line, call, cudaGetErrorString(code));
  std::exit(1);
}

}  // namespace ladder

#define CUDA_CHECK(call) ::ladder::check((call), #call, __LINE__)
