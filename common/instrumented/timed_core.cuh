/// @file
/// A core that measures: the time from the start of products to the end of the wait for them, and when a tile
/// begins.
#pragma once
#include "common/instrumented/trace.cuh"

namespace ladder {

template <class Core>
struct TimedCore : Core {
  [[no_unique_address]] trace::Stopwatch products;

  /// As Core::start(); the stopwatch starts.
  template <class TileA, class TileB>
  __device__ __forceinline__ void start(const TileA& a, int row, const TileB& b, bool first) {
    products.start(first);
    Core::start(a, row, b, first);
  }

  /// As Core::finish(); the stopwatch stops.
  template <int kInFlight>
  __device__ __forceinline__ void finish() {
    products.start();  // if none was started since: the wait is what is measured
    Core::template finish<kInFlight>();
    products.stop(trace::Event::compute);
  }
  /// As above, until nothing is unfinished.
  __device__ __forceinline__ void finish() { finish<0>(); }
  /// As above, until only the newest product is unfinished.
  __device__ __forceinline__ void finish_all_but_last() { finish<1>(); }
};

}  // namespace ladder
