/// @file
/// Shadow of common/host/launch.cuh: the kernel runs on the CPU device, at once.
#pragma once
#include <cuda_runtime.h>

#include <string>
#include <tuple>
#include <utility>

#include "common/cpu_device/engine.hpp"
#include "common/host/error.hpp"
#include "common/host/launch_config.hpp"

namespace ladder {

/// Runs `kernel` with `args`, converted once to the kernel's own parameter types, as every thread of the
/// grid. Streams need no order of their own here: work is done when the call returns.
/// @throws CudaError if the launch is refused. @throws cpu_device::Failure if the kernel breaks a rule.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchConfig& config, Args&&... args) {
  const cpu_device::KernelLaunch kernel_launch{config.name, config.grid, config.block, config.cluster,
                                               config.shared_bytes};
  if (const char* limit = cpu_device::refused(kernel_launch)) {
    const std::string call = std::string("launch of kernel '") + config.name + "' (" + limit + ")";
    throw CudaError(cudaErrorInvalidConfiguration, call.c_str(), __FILE__, __LINE__);
  }
  const std::tuple<Params...> params(static_cast<Params>(std::forward<Args>(args))...);
  cpu_device::launch(kernel_launch, [&] { std::apply(kernel, params); });
}

}  // namespace ladder
