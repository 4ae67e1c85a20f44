/// @file
/// Shadow of common/cuda/host_signal.hpp: a wait of the host runs queued work of streams until what it waits
/// for holds.
#pragma once
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/cpu_device/api/host_waits.hpp"

namespace ladder {

/// Never thrown here: a wait that nothing queued will end is a cpu_device::Failure, at once.
struct HostWaitTimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Guards what the host's thread and host functions of streams (cudaLaunchHostFunc) share.
class HostSignal {
 public:
  /// @param name what reports call it
  explicit HostSignal(std::string name) : name_(std::move(name)) {}

  /// Runs `change` under the lock. It must not call CUDA: a host function may not.
  template <class Change>
  void update(const Change& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
    updates_.remember_running_host_function(name_);
  }

  /// Runs queued work until `holds`, called under the lock, returns true, then `then` under the same lock.
  /// @throws cpu_device::Failure, naming the signal, if no queued host function is left that could change it
  template <class Holds, class Then>
  void wait(const Holds& holds, const Then& then, std::chrono::milliseconds) {
    while (!run_if(holds, then)) cpu_device::run_next_host_function(name_);
    updates_.host_has_seen_them();
  }

 private:
  template <class Holds, class Then>
  bool run_if(const Holds& holds, const Then& then) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!holds()) return false;
    then();
    return true;
  }

  const std::string name_;
  std::mutex mutex_;
  cpu_device::HostFunctionUpdates updates_;
};

}  // namespace ladder
