/// @file
/// Shadow of common/ptx/stmatrix.cuh.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/shared_address.cuh"

namespace ptx {

inline void stmatrix_x4(void* row, const uint32_t (&r)[4], CPU_DEVICE_WHERE) {
  cpu_device::stmatrix_x4(row, r, /*transposed=*/false, where);
}

}  // namespace ptx
