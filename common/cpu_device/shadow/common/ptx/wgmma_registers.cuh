/// @file
/// Shadow of common/ptx/wgmma_registers.cuh. Registers are variables in memory, read when the product is
/// executed.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/wgmma.cuh"

namespace ptx {

/// Nothing is moved here, see keep_in_registers() of the sums.
template <int kSteps>
void keep_in_registers(uint32_t (&)[kSteps][4]) {}

template <bool kBRowMajor>
[[gnu::always_inline]] inline void wgmma_m64n128k16(float (&d)[64], const uint32_t (&a)[4], uint64_t b,
                                                    bool accumulate, CPU_DEVICE_WHERE) {
  cpu_device::wgmma(d, 128, a, b, accumulate, kBRowMajor, where);
}

}  // namespace ptx
