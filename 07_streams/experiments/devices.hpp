/// @file
/// What the experiments with several GPUs share: how many there are, which is current, and streams on them.
#pragma once
#include <string>

#include "07_streams/experiments/experiment.hpp"
#include "common/cuda/cuda_handles.hpp"

namespace lesson07 {

/// Makes a device the current one for as long as it lives: launches, allocations, new streams and new events
/// are the current device's.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// That the process sees; CUDA_VISIBLE_DEVICES chooses them.
int count_devices();

/// True if there are as many; else says so in one line.
/// @throws ladder::BadInput if they are of different kinds
bool has_devices(const Context& context, const std::string& experiment, int needed);

/// Lets the kernels and copies of two devices reach each other's memory directly.
/// @returns false where the hardware cannot: copies between them then go through host memory
bool enable_peer_access(int one, int other);

/// A non-blocking stream whose kernels get free SMs before those of other streams. Of the current device.
ladder::Stream make_urgent_stream();

}  // namespace lesson07
