/// @file
/// The calls of cpu_device.hpp that concern streams.
#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

void set_options(const Options& options) {
  set_launch_options(options);
  streams().restart_schedule(options.schedule.seed);
}

std::vector<StreamSpan> take_stream_trace() {
  std::vector<StreamSpan> spans;
  host_call("take_stream_trace", [&] {
    spans = streams().take_spans();
    return cudaSuccess;
  });
  return spans;
}

double stream_time_us() {
  double us = 0;
  host_call("stream_time_us", [&] {
    us = streams().time_us();
    return cudaSuccess;
  });
  return us;
}

}  // namespace cpu_device
