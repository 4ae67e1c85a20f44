/// @file
/// Shadow of common/ptx/mbarrier.cuh.
#pragma once
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/shared_address.cuh"

namespace ptx {

using Mbarrier = uint64_t;
using CallSite = cpu_device::Location;

inline void mbarrier_init(Mbarrier* barrier, uint32_t arrivals, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_init(barrier, arrivals, where);
}
inline void mbarrier_name(Mbarrier* barrier, const char* name, int index, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_name(barrier, name, index, where);
}
inline void fence_mbarrier_init(CPU_DEVICE_WHERE) { cpu_device::fence_mbarrier_init(where); }
inline void mbarrier_arrive(Mbarrier* barrier, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_arrive(barrier, 1, 0, "mbarrier_arrive", where);
}
inline void mbarrier_arrive_expect_bytes(Mbarrier* barrier, uint32_t bytes, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_arrive(barrier, 1, bytes, "mbarrier_arrive_expect_bytes", where);
}
inline void mbarrier_wait(Mbarrier* barrier, uint32_t parity, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_wait(barrier, parity, "mbarrier_wait", where);
}

}  // namespace ptx
