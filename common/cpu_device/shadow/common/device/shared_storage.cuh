/// @file
/// Shadow of common/device/shared_storage.cuh.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ladder {

/// The dynamic shared memory of this block, seen as a T.
template <class T>
T& shared_storage(CPU_DEVICE_WHERE) {
  static_assert(alignof(T) <= 1024);
  return *static_cast<T*>(cpu_device::shared_storage(sizeof(T), alignof(T), where));
}

}  // namespace ladder
