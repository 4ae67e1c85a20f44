/// @file
/// Shadow of common/instrumented/trace.cuh. The virtual clock records the spans by itself; all that it cannot
/// know is where a tile of C begins.
#pragma once
#include "common/cuda/tile_count.hpp"
#include "common/cuda/trace_records.hpp"

namespace ladder::trace {

struct Span {
  explicit Span(Event) {}
  explicit Span(const void*) {}
  ~Span() {}
};

struct Stopwatch {
  /// Thread 0 of block 0 speaks for its block, which is the one whose time is recorded.
  void start(bool begins_tile = false) {
    if (begins_tile && threadIdx.x == 0 && blockIdx.x == 0) count_tile();
  }
  void stop(Event) {}
};

}  // namespace ladder::trace
