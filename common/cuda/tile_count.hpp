/// @file
/// How many tiles of C the recorded block of a timeline has begun. Only in the build for the CPU device.
#pragma once

namespace ladder::trace {

/// Called by a kernel when its block 0 begins a tile.
void count_tile();

}  // namespace ladder::trace
