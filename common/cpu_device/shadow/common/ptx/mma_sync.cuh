/// @file
/// Shadow of common/ptx/mma_sync.cuh.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/shared_address.cuh"

namespace ptx {

inline void ldmatrix_x4(uint32_t (&r)[4], const void* row, CPU_DEVICE_WHERE) {
  cpu_device::ldmatrix_x4(r, row, /*transposed=*/false, where);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row, CPU_DEVICE_WHERE) {
  cpu_device::ldmatrix_x4(r, row, /*transposed=*/true, where);
}
inline void mma_m16n8k16(float* d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1, CPU_DEVICE_WHERE) {
  cpu_device::mma_m16n8k16(d, a, b0, b1, where);
}

}  // namespace ptx
