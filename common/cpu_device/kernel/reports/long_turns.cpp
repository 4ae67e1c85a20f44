/// @file
/// A thread of the host looks now and then whether each cluster has resumed another fiber, and asks the OS
/// thread of one that has not where it is.
#include "common/cpu_device/kernel/reports/long_turns.hpp"

#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <atomic>
#include <cerrno>  // program_invocation_short_name
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/cpu_device/kernel/engine_thread.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

constexpr double kLongTurnS = 2;  ///< of the OS thread's processor time
constexpr auto kInterval = std::chrono::milliseconds(250);
/// Ignored unless somebody asks for it, so that a program's own meaning of it is unlikely.
constexpr int kSignal = SIGURG;

struct Watched {
  pthread_t os_thread;
  const char* kernel;
  const std::atomic<uint64_t>* turns;
  uint64_t seen_turns = 0;
  double since = 0;
  bool is_named = false;
};

struct Watch {
  std::mutex mutex;
  std::condition_variable comes;
  std::list<Watched> watched;
};
Watch& watch() {
  static auto& instance = *new Watch;  // its thread goes on until the very end
  return instance;
}

/// What the handler finds, for one question at a time.
struct Place {
  static constexpr int kMost = 32;
  sem_t is_filled;
  void* frames[kMost];
  int count = 0;
  const Thread* thread = nullptr;
  Uint3 block;
  unsigned warp = 0, lane = 0;
};
Place& place() {
  static auto& instance = *new Place;
  return instance;
}

void on_signal(int) {
  const int error = errno;
  Place& to = place();
  to.thread = current_thread;
  to.count = backtrace(to.frames, Place::kMost);
  if (to.thread) {
    to.block = to.thread->ids.block->index;
    to.warp = to.thread->warp->index;
    to.lane = to.thread->lane;
  }
  sem_post(&to.is_filled);
  errno = error;
}

double processor_time(pthread_t os_thread) {
  clockid_t clock{};
  timespec time{};
  if (pthread_getcpuclockid(os_thread, &clock) || clock_gettime(clock, &time)) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void name_place(const Watched& watched, double seconds) {
  Place& found = place();
  const uint64_t turns = *watched.turns;
  if (pthread_kill(watched.os_thread, kSignal)) return;
  timespec limit{};
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 1;
  if (sem_timedwait(&found.is_filled, &limit) || !found.thread || *watched.turns != turns) return;
  constexpr int kInterrupted = 2;  // behind the handler and what calls it
  std::vector<uintptr_t> frames;
  for (int i = kInterrupted; i < found.count; ++i)
    frames.push_back(reinterpret_cast<uintptr_t>(found.frames[i]) + (i == kInterrupted));  // a return address
  std::string line;
  for (const uintptr_t frame : frames) {
    line = own_place({"", 0, reinterpret_cast<const void*>(frame), nullptr});
    if (line != ":0") break;
  }
  if (const auto calls = source_calls(frames.data(), static_cast<unsigned>(frames.size())); line == ":0")
    line = calls.empty() ? "an unknown place" : calls.front();
  std::fprintf(
      stderr,
      "%s: warning: kernel '%s': the thread runs for %.2g s without a wait or an exit, at %s: does its "
      "loop end? How often it passed is not known, as it is seen from outside\n  in block (%u,%u,%u) warp "
      "%u lane %u\n",
      program_invocation_short_name, watched.kernel, seconds, line.c_str(), found.block.x, found.block.y,
      found.block.z, found.warp, found.lane);
}

void look_for_ever() {
  std::unique_lock<std::mutex> lock(watch().mutex);
  for (;;) {
    watch().comes.wait(lock, [] { return !watch().watched.empty(); });
    lock.unlock();
    std::this_thread::sleep_for(kInterval);
    lock.lock();
    for (Watched& one : watch().watched) {
      const double now = processor_time(one.os_thread);
      if (const uint64_t turns = *one.turns; turns != one.seen_turns) {
        one.seen_turns = turns;
        one.since = now;
        one.is_named = false;
      } else if (!one.is_named && now - one.since > kLongTurnS) {
        one.is_named = true;
        name_place(one, kLongTurnS);
      }
    }
  }
}

void begin_to_watch() {
  sem_init(&place().is_filled, 0, 0);
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs, which a handler must not
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(kSignal, &action, nullptr);
  std::thread(look_for_ever).detach();
}

}  // namespace

void name_long_turns() {
  constexpr double kShort = 0.05;
  const std::lock_guard<std::mutex> lock(watch().mutex);
  for (Watched& one : watch().watched) {
    const double now = processor_time(one.os_thread);
    if (one.is_named || *one.turns != one.seen_turns || now - one.since < kShort) continue;
    one.is_named = true;
    name_place(one, now - one.since);
  }
}

LongTurnsAreNamed::LongTurnsAreNamed(const char* kernel, const std::atomic<uint64_t>& turns) {
  static const bool begun = (begin_to_watch(), true);
  (void)begun;
  const std::lock_guard<std::mutex> lock(watch().mutex);
  watch().watched.push_back({pthread_self(), kernel, &turns, turns, processor_time(pthread_self())});
  watch().comes.notify_one();
}

LongTurnsAreNamed::~LongTurnsAreNamed() {
  const std::lock_guard<std::mutex> lock(watch().mutex);
  watch().watched.remove_if([](const Watched& one) { return pthread_equal(one.os_thread, pthread_self()); });
}

}  // namespace cpu_device
