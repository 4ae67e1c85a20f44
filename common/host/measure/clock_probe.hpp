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
  /// Megahertz, once the stream has been synchronised.
  double mhz() const;

 private:
  DeviceBuffer<float> mhz_{1};
};

}  // namespace ladder
