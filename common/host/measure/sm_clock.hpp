/// @file
/// The clock that the multiprocessors ran at while a piece of work ran, by stamps before and after it. The
/// driver reports the clock that it asks for, a few hundred milliseconds late; while tensor cores are busy,
/// the SMs get less.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"

namespace ladder {

/// The cycle counter of a multiprocessor and the global timer, read together. The counter goes on from kernel
/// to kernel.
struct ClockStamp {
  uint64_t cycles, ns;  ///< both 0 where no stamp was taken
};

/// What the stamps before and after some work say.
struct SmClock {
  double mhz = 0;           ///< the median over multiprocessors with both stamps
  int multiprocessors = 0;  ///< so many had both
};

/// Queues a stamp of every multiprocessor before and after the work in a stream. Only in the GPU build.
class ClockStamps {
 public:
  explicit ClockStamps(int multiprocessors = device_info().multiprocessors);
  /// A kernel of a few microseconds, in front of the work and behind it. The work may be any number of
  /// launches.
  void before(cudaStream_t stream);
  void after(cudaStream_t stream);
  /// The clock between the last two stamps. Waits until the work has run.
  /// @throws std::logic_error if after() was not called behind before(), or no multiprocessor has both stamps
  SmClock read() const;

 private:
  enum { kBefore, kAfter, kStamps };
  void stamp(int which, cudaStream_t stream);

  int multiprocessors_;
  DeviceBuffer<ClockStamp> stamps_;  ///< [kStamps][multiprocessors_], by %smid
  cudaStream_t stream_ = nullptr;
  bool has_before_ = false, has_both_ = false;
};

}  // namespace ladder
