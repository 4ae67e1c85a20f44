/// @file
/// How a block's threads are grouped.
#pragma once

namespace ladder {

constexpr int kWarp = 32;        ///< threads of a warp
constexpr int kWarpgroup = 128;  ///< threads of a warpgroup: warps that issue wgmma together
constexpr int kWarpsPerWarpgroup = kWarpgroup / kWarp;  ///< four

}  // namespace ladder
