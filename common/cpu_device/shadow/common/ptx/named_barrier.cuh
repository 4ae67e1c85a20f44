/// @file
/// Shadow of common/ptx/named_barrier.cuh.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline void named_barrier_sync(int id, int threads, CPU_DEVICE_WHERE) {
  cpu_device::named_barrier_sync(static_cast<unsigned>(id), static_cast<unsigned>(threads), where);
}
inline bool named_barrier_or(int id, int threads, bool yes, CPU_DEVICE_WHERE) {
  return cpu_device::named_barrier_or(static_cast<unsigned>(id), static_cast<unsigned>(threads), yes, where);
}
inline void named_barrier_arrive(int id, int threads, CPU_DEVICE_WHERE) {
  cpu_device::named_barrier_arrive(static_cast<unsigned>(id), static_cast<unsigned>(threads), where);
}

}  // namespace ptx
