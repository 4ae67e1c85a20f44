/// @file
/// Shadow of common/ptx/cp_async.cuh.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared_address.cuh"

namespace ptx {

inline void cp_async_16(void* to, const void* from, uint32_t source_bytes, CPU_DEVICE_WHERE) {
  cpu_device::copy_async(to, from, 16, source_bytes, where);
}
inline void cp_async_ca_16(void* to, const void* from, CPU_DEVICE_WHERE) {
  cpu_device::copy_async(to, from, 16, 16, where);
}
inline void cp_async_mbarrier_arrive_noinc(Mbarrier* barrier, CPU_DEVICE_WHERE) {
  cpu_device::copy_arrive(barrier, cpu_device::CopyArrival::expected, where);
}
inline void cp_async_mbarrier_arrive(Mbarrier* barrier, CPU_DEVICE_WHERE) {
  cpu_device::copy_arrive(barrier, cpu_device::CopyArrival::extra, where);
}

}  // namespace ptx
