/// @file
/// How threads are grouped: by hardware, for every kernel alike.
#pragma once

namespace cpu_device {

constexpr unsigned kWarpLanes = 32;
constexpr unsigned kMaxWarps = 32;  ///< of a block
constexpr unsigned kWarpgroupWarps = 4;
constexpr unsigned kWarpgroupThreads = kWarpgroupWarps * kWarpLanes;

}  // namespace cpu_device
