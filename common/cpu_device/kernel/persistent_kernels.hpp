/// @file
/// Kernels whose grid follows from what the device holds at once, not from their tiles.
#pragma once

namespace cpu_device {

/// Whoever sizes a grid asks first how many of the kernel's blocks are resident.
void note_persistent(const void* kernel);

}  // namespace cpu_device
