/// @file
/// Shadow of common/ptx/timer.cuh: only the order of what reads it. Times are not those of the timeline.
#pragma once
#include <atomic>
#include <cstdint>

namespace ptx {

/// One more at every reading, on all threads.
inline uint64_t globaltimer_ns() {
  static std::atomic<uint64_t> readings{0};
  return ++readings;
}

}  // namespace ptx
