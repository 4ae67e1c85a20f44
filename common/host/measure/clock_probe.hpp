/// @file
/// The clock that the multiprocessors really run at, measured by a kernel. What the driver reports is a few
/// hundred milliseconds old, and a GPU at its power limit changes its clock faster than that.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/device_buffer.hpp"

namespace ladder {

/// Behind other work in a stream, it tells at which clock that work ended. Only in the GPU build.
class ClockProbe {
 public:
  /// Queues a kernel of one thread that counts cycles for 50 microseconds.
  void start(cudaStream_t stream);
  /// Megahertz, of the last start(). Waits until its kernel has run, and all that was queued before it.
  /// @throws std::logic_error if there was no start()
  double mhz() const;

 private:
  DeviceBuffer<float> mhz_{1};
  cudaStream_t stream_ = nullptr;
  bool started_ = false;
};

}  // namespace ladder
