/// @file
/// Shadow of common/cuda/launch.cuh: the kernel becomes an operation of its stream on the CPU device.
#pragma once
#include <cuda_runtime.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
  std::tuple<Params...> converted(static_cast<Params>(std::forward<Args>(args))...);
  kernel_launch.function = reinterpret_cast<const void*>(kernel);
  std::apply(
      [&](const Params&... param) {
        unsigned index = 0;
        (cpu_device::note_parameter(kernel_launch, index++, &param, sizeof param), ...);
      },
      converted);
  std::vector<const void*> pointers, words;
  std::apply(
      [&](const auto&... own) {
        (cpu_device::note_pointer(pointers, own), ...);
        (cpu_device::note_words(words, &own, sizeof own), ...);
      },
      converted);
  const cudaError_t result =
      cpu_device::launch_on_stream(config.stream, cpu_device::kDefaultStream, kernel_launch, pointers, words,
                                   [kernel, kept = std::move(converted)](const auto& run_as_every_thread) {
                                     // On the stack, where nobody takes them for global memory.
                                     const auto function = kernel;
                                     const std::tuple<Params...> params = kept;
                                     run_as_every_thread([&] {
                                       const auto call_kernel = [&](Params... own) {
                                         const auto in_register = function;  // read before, not after
                                         cpu_device::poison_local_variables();
                                         in_register(own...);
                                       };
                                       std::apply(call_kernel, params);
                                     });
                                   });
  check(result, call.c_str(), __FILE__, __LINE__);
}

}  // namespace ladder
