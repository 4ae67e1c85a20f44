/// @file
/// How the host waits for what host functions of streams do. A shadow of this header runs the queued work of
/// the CPU device's streams instead of sleeping.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace ladder {

/// The host has waited for a signal longer than it was willing to.
struct HostWaitTimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Guards what the host's thread and host functions of streams (cudaLaunchHostFunc) share, and wakes the host
/// when it has changed.
class HostSignal {
 public:
  /// @param name what reports call it
  explicit HostSignal(std::string name) : name_(std::move(name)) {}

  /// Runs `change` under the lock, then wakes whoever waits. `change` must not call CUDA: a host function may
  /// not.
  template <class Change>
  void update(const Change& change) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  /// Waits until `holds`, called under the lock, returns true, then runs `then` under the same lock.
  /// @throws HostWaitTimedOut, naming the signal, after `limit`
  template <class Holds, class Then>
  void wait(const Holds& holds, const Then& then, std::chrono::milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, limit, holds))
      throw HostWaitTimedOut("the host has waited " + std::to_string(limit.count()) + " ms for " + name_);
    then();
  }

 private:
  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace ladder
