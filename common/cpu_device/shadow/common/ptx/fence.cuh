/// @file
/// Shadow of common/ptx/fence.cuh.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline void fence_proxy_async(CPU_DEVICE_WHERE) { cpu_device::fence_proxy_async(where); }

}  // namespace ptx
