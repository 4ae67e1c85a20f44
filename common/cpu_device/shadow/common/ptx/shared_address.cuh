/// @file
/// Shadow of common/ptx/shared_address.cuh.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline uint32_t shared_address(const void* pointer, CPU_DEVICE_WHERE) {
  return cpu_device::shared_address(pointer, where);
}

}  // namespace ptx
