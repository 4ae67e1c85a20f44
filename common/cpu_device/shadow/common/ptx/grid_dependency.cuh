/// @file
/// Shadow of common/ptx/grid_dependency.cuh. Kernels run one after the other here; the wait counts all the
/// same, for what a kernel touches before it.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline void wait_for_grid_before(CPU_DEVICE_WHERE) { cpu_device::wait_for_grid_before(where); }
inline void let_next_grid_begin() {}

}  // namespace ptx
