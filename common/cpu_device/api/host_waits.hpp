/// @file
/// What the shadow of HostSignal needs of the streams: to run queued work, and to know which host functions
/// the host has heard of.
#pragma once
#include <memory>
#include <string>

namespace cpu_device {

/// Runs the queued host function that comes first, and what it needs; where the schedule is random, anything
/// else that may run.
/// @throws Failure, naming `signal`, if no host function is queued
void run_next_host_function(const std::string& signal);

/// The host functions that have changed something, whose end the host knows of once it has seen the change.
class HostFunctionUpdates {
 public:
  HostFunctionUpdates();
  ~HostFunctionUpdates();
  HostFunctionUpdates(const HostFunctionUpdates&) = delete;

  /// Called where something changes. Nothing to remember outside of host functions.
  /// @param signal what reports call it
  void remember_running_host_function(const std::string& signal);
  /// All that was ordered before these host functions is ordered before what the host enqueues from now on.
  void host_has_seen_them();

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace cpu_device
