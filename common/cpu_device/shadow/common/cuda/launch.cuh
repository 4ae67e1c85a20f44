/// @file
/// Shadow of common/cuda/launch.cuh: the kernel becomes an operation of its stream on the CPU device.
#pragma once
#include <cuda_runtime.h>

#include <string>
#include <tuple>
#include <utility>

#include "common/cpu_device/api/kernel_launch.hpp"
#include "common/cuda/error.hpp"
#include "common/cuda/launch_config.hpp"

namespace ladder {

/// Queues `kernel` with `args`, converted once to the kernel's own parameter types. On the legacy default
/// stream it has run when the call returns.
/// @throws CudaError if the launch is refused. @throws cpu_device::Failure if this kernel, or another that
/// runs during the call, breaks a rule.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  cpu_device::KernelLaunch kernel_launch{config.name,    config.grid,         config.block,
                                         config.cluster, config.shared_bytes, config.pdl};
  const std::string call = cpu_device::describe_launch(kernel_launch);
  if (const char* limit = cpu_device::refused(kernel_launch)) {
    const std::string refused = cpu_device::describe_launch(kernel_launch, limit);
    const bool cluster = cpu_device::has_refused_cluster(kernel_launch);
    throw CudaError(cluster ? cudaErrorInvalidClusterSize : cudaErrorInvalidConfiguration, refused.c_str(),
                    __FILE__, __LINE__);
  }
  const cudaError_t result =
      cpu_device::enqueue_kernel(kernel, kernel_launch, config.stream, cpu_device::kDefaultStream,
                                 std::tuple<Params...>(static_cast<Params>(std::forward<Args>(args))...));
  check(result, call.c_str(), __FILE__, __LINE__);
}

}  // namespace ladder
