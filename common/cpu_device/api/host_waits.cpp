/// @file
/// Waits of the host for host functions.
#include "common/cpu_device/api/host_waits.hpp"

#include <vector>

#include "common/cpu_device/api/host_calls.hpp"

namespace cpu_device {

struct HostFunctionUpdates::Known {
  OrderClock clock;
  std::vector<std::shared_ptr<TimePoint>> ends;
};

HostFunctionUpdates::HostFunctionUpdates() : known_(std::make_unique<Known>()) {}
HostFunctionUpdates::~HostFunctionUpdates() = default;

void HostFunctionUpdates::remember_running_host_function() {
  const Operation* running = running_host_function();
  if (!running) return;
  known_->clock.join(running->clock);
  known_->ends.push_back(running->end);
}

void HostFunctionUpdates::host_has_seen_them() {
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  streams().host_learns(known_->clock, known_->ends);
  known_->ends.clear();
}

void run_next_host_function(const std::string& signal) {
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  const uint64_t before = streams().host_functions_run();
  host_call("HostSignal::wait", [&] {
    // What the schedule has run meanwhile may have been it.
    if (streams().host_functions_run() == before) streams().run_next_host_function(signal);
    return cudaSuccess;
  });
}

}  // namespace cpu_device
