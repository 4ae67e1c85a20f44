/// @file
/// Waits of the host for host functions. Streams execute at once so far, so there is nothing to run.
#include "common/cpu_device/host_waits.hpp"

#include "common/cpu_device/cpu_device.hpp"

namespace cpu_device {

struct HostFunctionUpdates::Known {};

HostFunctionUpdates::HostFunctionUpdates() = default;
HostFunctionUpdates::~HostFunctionUpdates() = default;
void HostFunctionUpdates::remember_running_host_function() {}
void HostFunctionUpdates::host_has_seen_them() {}

void run_next_host_function(const std::string& signal) {
  throw Failure("the host waits for " + signal + "; no queued host function will change it");
}

}  // namespace cpu_device
