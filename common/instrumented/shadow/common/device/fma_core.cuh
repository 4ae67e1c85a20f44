/// @file
/// Shadow of common/device/fma_core.cuh: the core measures its products.
#pragma once
#define FmaCore PlainFmaCore
#include_next "common/device/fma_core.cuh"
#undef FmaCore

#include "common/instrumented/timed_core.cuh"

namespace ladder {

template <int kN>
struct FmaCore : TimedCore<PlainFmaCore<kN>> {};

}  // namespace ladder
