/// @file
/// How a kernel is launched.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

namespace ladder {

/// `name` is what reports and traces call the kernel.
struct LaunchConfig {
  const char* name = "kernel";
  dim3 grid, block;
  size_t shared_bytes = 0;  ///< dynamic shared memory of each block; usually sizeof(SharedStorage)
  dim3 cluster = dim3(1, 1, 1);
  cudaStream_t stream = nullptr;
  /// Programmatic dependent launch: the kernel may begin before the kernel before it in the stream has ended,
  /// and a block touches no global memory before one of its threads is through ptx::griddepcontrol_wait().
  bool pdl = false;
};

}  // namespace ladder
