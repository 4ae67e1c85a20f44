/// @file
/// Calls of CUDA's libraries as operations of streams. Private to the host's side of the CPU device.
#pragma once
#include <functional>
#include <vector>

#include "common/cpu_device/api/host_calls.hpp"

namespace cpu_device {

/// Queues `run`, which touches this memory, as the kernel `name`.
/// @param waits the host does, for a result of its own
cudaError_t call_library(const char* name, cudaStream_t stream, std::vector<Touch> touches,
                         std::function<void()> run, bool waits = false);

}  // namespace cpu_device
