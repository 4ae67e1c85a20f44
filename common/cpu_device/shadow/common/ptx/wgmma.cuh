/// @file
/// Shadow of common/ptx/wgmma.cuh. Descriptors have their real bit fields. Functions are always inlined, so
/// that who calls an operation is a line of the kernel.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/shared_address.cuh"

namespace ptx {

inline void wgmma_fence(CPU_DEVICE_WHERE) { cpu_device::wgmma_fence(where); }
inline void wgmma_commit_group(CPU_DEVICE_WHERE) { cpu_device::wgmma_commit_group(where); }
template <int kInFlight>
[[gnu::always_inline]] inline void wgmma_wait_group(CPU_DEVICE_WHERE) {
  cpu_device::wgmma_wait_group(kInFlight, where);
}

/// Nothing is moved here: the accumulators live in memory, and every operation may change them. That it
/// stands where a compiler for the GPU needs it is checked.
template <int kCount>
void keep_in_registers(float (&d)[kCount], CPU_DEVICE_WHERE) {
  cpu_device::keep_in_registers(d, kCount, where);
}

inline uint64_t matrix_descriptor(const void* start, uint32_t leading_bytes, uint32_t stride_bytes,
                                  CPU_DEVICE_WHERE) {
  return static_cast<uint64_t>((ptx::shared_address(start, where) & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(leading_bytes >> 4) << 16 | static_cast<uint64_t>(stride_bytes >> 4) << 32 |
         uint64_t{1} << 62;
}

template <bool kBRowMajor>
[[gnu::always_inline]] inline void wgmma_m64n64k16(float (&d)[32], uint64_t a, uint64_t b, bool accumulate,
                                                   CPU_DEVICE_WHERE) {
  cpu_device::wgmma(d, 64, a, b, accumulate, kBRowMajor, where);
}
template <bool kBRowMajor>
[[gnu::always_inline]] inline void wgmma_m64n128k16(float (&d)[64], uint64_t a, uint64_t b, bool accumulate,
                                                    CPU_DEVICE_WHERE) {
  cpu_device::wgmma(d, 128, a, b, accumulate, kBRowMajor, where);
}
template <bool kBRowMajor>
[[gnu::always_inline]] inline void wgmma_m64n192k16(float (&d)[96], uint64_t a, uint64_t b, bool accumulate,
                                                    CPU_DEVICE_WHERE) {
  cpu_device::wgmma(d, 192, a, b, accumulate, kBRowMajor, where);
}
template <bool kBRowMajor>
[[gnu::always_inline]] inline void wgmma_m64n256k16(float (&d)[128], uint64_t a, uint64_t b, bool accumulate,
                                                    CPU_DEVICE_WHERE) {
  cpu_device::wgmma(d, 256, a, b, accumulate, kBRowMajor, where);
}

}  // namespace ptx
