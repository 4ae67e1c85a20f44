/// @file
/// Shadow of common/device/wgmma_core.cuh: the core measures its products.
#pragma once
#define WgmmaCore PlainWgmmaCore
#include_next "common/device/wgmma_core.cuh"
#undef WgmmaCore

#include "common/instrumented/timed_core.cuh"

namespace ladder {

template <int kN>
struct WgmmaCore : TimedCore<PlainWgmmaCore<kN>> {};

}  // namespace ladder
