/// @file
/// Shadow of common/ptx/wgmma_widths.cuh.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

template <int kN, bool kBRowMajor, bool kAColumnMajor = false>
[[gnu::always_inline]] inline void wgmma_m64k16(float (&d)[kN / 2], uint64_t a, uint64_t b, bool accumulate,
                                                CPU_DEVICE_WHERE) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256);
  cpu_device::wgmma(d, kN, a, b, accumulate, kBRowMajor, where, kAColumnMajor);
}

}  // namespace ptx
