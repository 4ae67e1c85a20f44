/// @file
/// The one way to start a kernel. A shadow of this header runs it on the CPU device instead.
#pragma once
#include <cuda_runtime.h>

#include <utility>

#include "common/cuda/error.hpp"
#include "common/cuda/launch_config.hpp"
#include "common/cuda/residency.hpp"

namespace ladder {

/// Launches `kernel` with `args`, converted to the kernel's own parameter types.
/// @throws CudaError if the launch is refused.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  detail::allow_shared_bytes(reinterpret_cast<const void*>(kernel), config.shared_bytes);
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  // A cluster of one block is a plain launch, which also GPUs without clusters accept.
  if (config.cluster.x * config.cluster.y * config.cluster.z > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {config.cluster.x, config.cluster.y, config.cluster.z};
  }
  if (config.pdl) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t cuda{};
  cuda.gridDim = config.grid;
  cuda.blockDim = config.block;
  cuda.dynamicSmemBytes = config.shared_bytes;
  cuda.stream = config.stream;
  cuda.attrs = attributes;
  cuda.numAttrs = count;
  CUDA_CHECK(cudaLaunchKernelEx(&cuda, kernel, static_cast<Params>(std::forward<Args>(args))...));
}

}  // namespace ladder
