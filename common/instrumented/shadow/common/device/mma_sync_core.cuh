/// @file
/// Shadow of common/device/mma_sync_core.cuh: the core measures its products.
#pragma once
#define MmaSyncCore PlainMmaSyncCore
#include_next "common/device/mma_sync_core.cuh"
#undef MmaSyncCore

#include "common/instrumented/timed_core.cuh"

namespace ladder {

template <int kN, int... kWarpTile>
struct MmaSyncCore : TimedCore<PlainMmaSyncCore<kN, kWarpTile...>> {};

}  // namespace ladder
