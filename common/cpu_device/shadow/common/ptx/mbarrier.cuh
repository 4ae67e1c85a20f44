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
/// One end of a pipeline: `end` is "full" or "empty".
inline void mbarrier_init(Mbarrier* barrier, uint32_t arrivals, const char* end, int slot, CallSite where) {
  cpu_device::mbarrier_init(barrier, arrivals, where, end, slot);
}
inline void fence_mbarrier_init(CPU_DEVICE_WHERE) { cpu_device::fence_mbarrier_init(where); }
inline void mbarrier_arrive(Mbarrier* barrier, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_arrive(barrier, 1, 0, "mbarrier_arrive", where);
}
inline void mbarrier_arrive_expect_bytes(Mbarrier* barrier, uint32_t bytes, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_arrive(barrier, 1, bytes, "mbarrier_arrive_expect_bytes", where);
}
inline bool mbarrier_try_wait(Mbarrier* barrier, uint32_t parity, CPU_DEVICE_WHERE) {
  return cpu_device::mbarrier_test(barrier, parity, "mbarrier_try_wait", where);
}
inline void mbarrier_wait(Mbarrier* barrier, uint32_t parity, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_wait(barrier, parity, "mbarrier_wait", where);
}

}  // namespace ptx
