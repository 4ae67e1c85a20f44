/// @file
/// Shadow of common/ptx/stmatrix_trans.cuh.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline void stmatrix_x4_trans(void* row, const uint32_t (&r)[4], CPU_DEVICE_WHERE) {
  cpu_device::stmatrix_x4(row, r, /*transposed=*/true, where);
}

}  // namespace ptx
