/// @file
/// A value that only who holds its lock can touch.
#pragma once
#include <chrono>
#include <string>
#include <utility>

#include "common/cuda/host_signal.hpp"

namespace ladder {

/// What the host's thread and host functions of streams share, together with the HostSignal that guards it.
/// The value is handed to functions that run under the lock, and cannot be had otherwise: code that forgets
/// the lock does not compile. (A function that keeps a reference to it is beyond help.)
template <class T>
class Guarded {
 public:
  /// @param name what reports call a wait for it
  explicit Guarded(std::string name) : signal_(std::move(name)) {}

  /// Runs `change(value)` under the lock, then wakes whoever waits. It must not call CUDA.
  template <class Change>
  void update(const Change& change) {
    signal_.update([&] { change(value_); });
  }

  /// Waits until `holds(value)`, then runs `then(value)` under the same lock.
  /// @throws HostWaitTimedOut, naming the signal, after `limit`
  template <class Holds, class Then>
  void wait(const Holds& holds, const Then& then, std::chrono::milliseconds limit) {
    signal_.wait([&] { return holds(std::as_const(value_)); }, [&] { then(value_); }, limit);
  }

 private:
  HostSignal signal_;
  T value_{};
};

}  // namespace ladder
