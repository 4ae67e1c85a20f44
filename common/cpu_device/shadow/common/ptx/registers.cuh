/// @file
/// Shadow of common/ptx/registers.cuh: the budget is kept as on a GPU.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

template <int kCount>
void setmaxnreg_inc(CPU_DEVICE_WHERE) {
  cpu_device::set_max_registers(kCount, /*increase=*/true, where);
}
template <int kCount>
void setmaxnreg_dec(CPU_DEVICE_WHERE) {
  cpu_device::set_max_registers(kCount, /*increase=*/false, where);
}

}  // namespace ptx
