/// @file
/// Shadow of common/device/cores.cuh: the time from the start of products to the end of the wait for them is
/// measured, and the beginning of a tile is noted.
#pragma once
#define WgmmaCore PlainWgmmaCore
#define MmaSyncCore PlainMmaSyncCore
#define FmaCore PlainFmaCore
#include_next "common/device/cores.cuh"
#undef WgmmaCore
#undef MmaSyncCore
#undef FmaCore

#include "common/instrumented/trace.cuh"

namespace ladder {

template <class Core>
struct TimedCore : Core {
  [[no_unique_address]] trace::Stopwatch products;

  template <class TileA, class TileB>
  __device__ __forceinline__ void start(const TileA& a, int row, const TileB& b, bool first) {
    products.start(first);
    Core::start(a, row, b, first);
  }

  template <int kInFlight>
  __device__ __forceinline__ void finish() {
    products.start();  // if none was started since: the wait is what is measured
    Core::template finish<kInFlight>();
    products.stop(trace::Event::compute);
  }
};

template <int kN>
struct WgmmaCore : TimedCore<PlainWgmmaCore<kN>> {};
template <int kN, int... kWarpTile>
struct MmaSyncCore : TimedCore<PlainMmaSyncCore<kN, kWarpTile...>> {};
template <int kN>
struct FmaCore : TimedCore<PlainFmaCore<kN>> {};

}  // namespace ladder
