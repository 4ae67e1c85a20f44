/// @file
/// The thread that runs host functions while the host makes no calls.
///
/// Elsewhere the thread that calls runs what is queued, so that every run of a schedule is the same. A host
/// that spins, `while (!flag) {}`, never calls. So long a pause between two calls is rare otherwise, and to
/// run something in it is legal, too.
#include "common/cpu_device/api/host_progress.hpp"

#include <chrono>
#include <thread>

#include "common/cpu_device/api/host_calls.hpp"

namespace cpu_device {
namespace {

constexpr std::chrono::milliseconds kLook{25};
constexpr unsigned kIdleLooks = 10;

std::atomic<bool> is_watching{false};

/// @return false if no host function is queued
bool run_one(StreamEngine& engine) {
  const OperationPointer next = engine.first_host_function();
  if (!next) return false;
  try {
    engine.run_until_done(next);
  } catch (const Failure& failure) {  // The host's next call throws it.
    engine.abandon();
    defer_failure(failure.what());
  }
  return true;
}

void watch() {
  uint64_t seen = host_calls_so_far;
  unsigned idle = 0;
  while (true) {
    std::this_thread::sleep_for(kLook);
    const std::unique_lock<std::recursive_mutex> lock(streams().mutex, std::try_to_lock);
    const uint64_t now = host_calls_so_far;
    // Who holds the lock is in a call.
    idle = lock && now == seen ? idle + 1 : 0;
    seen = now;
    if (!lock) continue;
    if (!streams().first_host_function()) {
      is_watching = false;  // under the lock, with which the next one is queued
      return;
    }
    if (idle >= kIdleLooks && !streams().running()) run_one(streams());
  }
}

}  // namespace

void watch_for_a_spinning_host() {
  if (is_watching.exchange(true)) return;
  std::thread(watch).detach();
}

}  // namespace cpu_device
