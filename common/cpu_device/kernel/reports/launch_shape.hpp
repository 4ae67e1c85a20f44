/// @file
/// What of a launch's grid and block does not fit what the source says of the kernel.
#pragma once
#include <string>

#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

/// "steps/1_shared_tile.cuh:56 in launch_gemm"; empty where that is not known.
std::string place_of_launch(const KernelLaunch&);
/// "the launch at ... gives a block 128 threads, and __launch_bounds__ of the kernel names 384: are 128 too
/// few?" Empty where the block is as large, or the kernel names no number. Or that it reads threadIdx.y, and
/// all threads of the block have 0.
std::string explain_block(const KernelLaunch&);
/// A failure for which missing threads may be the cause, with a second line that says how many the block
/// lacks.
std::string with_few_threads(const KernelLaunch&, const std::string& failure);
/// Likewise one for which a threadIdx.x may be the cause that goes further than the kernel's source expects.
std::string with_flat_block(const KernelLaunch&, const std::string& failure);

}  // namespace cpu_device
