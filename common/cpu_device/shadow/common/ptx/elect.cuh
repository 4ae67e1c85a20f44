/// @file
/// Shadows common/ptx/elect.cuh.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline bool elect_one() { return cpu_device::is_elected(); }

}  // namespace ptx
