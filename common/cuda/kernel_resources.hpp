/// @file
/// What a block of a kernel takes from the GPU. A shadow of this header answers for the CPU device.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/cuda/resources.hpp"

namespace ladder {

/// @param tile of C that a block computes, in words
/// @throws CudaError if the kernel cannot run with these resources
template <class... Params>
Resources kernel_resources(void (*kernel)(Params...), int threads, size_t shared_bytes,
                           const std::string& tile) {
  detail::allow_shared_bytes(reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaFuncAttributes attributes{};
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  Resources resources{tile, shared_bytes, attributes.numRegs, 0};
  CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resources.blocks_per_sm, kernel, threads, shared_bytes));
  return resources;
}

}  // namespace ladder
