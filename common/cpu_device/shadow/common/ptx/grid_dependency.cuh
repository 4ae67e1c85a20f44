/// @file
/// Shadow of common/ptx/grid_dependency.cuh. Kernels run one after the other here; the wait counts all the
/// same, for what a kernel touches before it.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline void griddepcontrol_wait(CPU_DEVICE_WHERE) { cpu_device::griddepcontrol_wait(where); }
inline void griddepcontrol_launch_dependents() {}

}  // namespace ptx
