/// @file
/// Waits of the host for host functions: in a call, or spinning without one.
#include "common/cpu_device/api/host_waits.hpp"

#include <chrono>
#include <thread>
#include <vector>

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

/// The thread that runs host functions while the host makes no calls.
///
/// Elsewhere the thread that calls runs what is queued, so that every run of a schedule is the same. A host
/// that spins, `while (!flag) {}`, never calls. So long a pause between two calls is rare otherwise, and to
/// run something in it is legal, too.
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

struct HostFunctionUpdates::Known {
  OrderClock clock;
  std::vector<std::shared_ptr<TimePoint>> ends;
  std::vector<std::shared_ptr<const Operation>> functions;
  std::string signal;
};

HostFunctionUpdates::HostFunctionUpdates() : known_(std::make_unique<Known>()) {}
HostFunctionUpdates::~HostFunctionUpdates() = default;

void HostFunctionUpdates::remember_running_host_function(const std::string& signal) {
  const Operation* running = running_host_function();
  if (!running) return;
  known_->clock.join(running->clock);
  known_->ends.push_back(running->end);
  known_->functions.push_back(running->shared_from_this());
  known_->signal = signal;
}

void HostFunctionUpdates::host_has_seen_them() {
  const std::lock_guard<std::recursive_mutex> lock(streams().mutex);
  streams().host_learns(known_->clock, known_->ends);
  known_->ends.clear();
  for (auto& function : known_->functions) streams().note_told_host(std::move(function), known_->signal);
  known_->functions.clear();
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
