/// @file
/// Names the barrier that the threads of a block pass again and again: perhaps in a loop without an end.
#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <chrono>
#include <cstdio>
#include <mutex>

#include "common/cpu_device/kernel/engine_barriers.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/launch_progress.hpp"

namespace cpu_device {
namespace {

constexpr double kWarnAfter = 3;     ///< seconds since a cluster began
constexpr uint64_t kLookEvery = 32;  ///< passes
/// A loop passes a barrier as often as a number says that the kernel is given, or a part of that for each
/// tile. What passes it more often is worth a question,
constexpr uint64_t kFewestSuspicious = 64, kMostUnsuspicious = 10'000;
/// and is ended where it passes it more often than any product of matrices can; see endless_loops_end_after.
constexpr uint64_t kEndless = 4, kFewestEndless = 1024;
/// Of a block that walks over all tiles of C alone, with tiles of no less than 40 x 40 x 40.
constexpr double kSmallestStep = 65536;

uint64_t most_passes(uint64_t largest) {
  const auto number = static_cast<double>(largest);
  const double steps = number * number * number / kSmallestStep;
  return static_cast<uint64_t>(
      std::max({static_cast<double>(kFewestEndless), kEndless * number, std::min(steps, 1e18)}));
}

struct EndlessLoop {
  std::mutex mutex;
  const Cluster* cluster = nullptr;
  Uint3 block;
  const char* what = "";
  Location where;
  uint64_t times = 0;
};
EndlessLoop& endless_loop() {
  static auto& loop = *new EndlessLoop;
  return loop;
}

}  // namespace

std::string describe_passes(const Uint3& block, const char* what, Location where, uint64_t times) {
  return print("block (%u,%u,%u): %sthreads have passed the %s at %s %llu times: does the loop end?", block.x,
               block.y, block.z, std::string(what) == "__syncthreads" ? "all " : "", what,
               own_place(where).c_str(), static_cast<unsigned long long>(times));
}

std::string passes_of(const Block& block) {
  const auto most =
      std::max_element(block.passed.begin(), block.passed.end(),
                       [](const auto& one, const auto& other) { return one.times < other.times; });
  if (most == block.passed.end()) return "";
  return ": " + describe_passes(block.ids.index, most->what, most->where, most->times);
}

void remember_endless_loop(const Cluster* cluster, const Uint3& block, const char* what, Location where,
                           uint64_t times) {
  EndlessLoop& loop = endless_loop();
  const std::lock_guard<std::mutex> lock(loop.mutex);
  loop.cluster = cluster;
  loop.block = block;
  loop.what = what;
  loop.where = where;
  loop.times = times;
}

void forget_endless_loop(const Cluster* cluster) {
  EndlessLoop& loop = endless_loop();
  const std::lock_guard<std::mutex> lock(loop.mutex);
  if (loop.cluster == cluster) loop.cluster = nullptr;
}

std::string describe_endless_loop() {
  EndlessLoop& loop = endless_loop();
  const std::lock_guard<std::mutex> lock(loop.mutex);
  return loop.cluster ? describe_passes(loop.block, loop.what, loop.where, loop.times) : "";
}

void Cluster::note_passed(Block& block, const char* what, Location where) {
  auto passed = std::find_if(block.passed.begin(), block.passed.end(),
                             [&](const Block::Passed& one) { return one.where == where; });
  if (passed == block.passed.end()) passed = block.passed.insert(passed, {what, where, 0});
  const uint64_t times = ++passed->times;
  if (times % kLookEvery ||
      times < std::clamp(2 * kernel_.largest_count, kFewestSuspicious, kMostUnsuspicious))
    return;
  remember_endless_loop(this, block.ids.index, what, where, times);
  const double since = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (since > kWarnAfter && !has_warned_of_passes_) {
    has_warned_of_passes_ = true;
    std::fprintf(stderr, "%s: warning: kernel '%s': %s\n", program_invocation_short_name, kernel_.name,
                 describe_passes(block.ids.index, what, where, times).c_str());
  }
  if (since > endless_loops_end_after && kernel_.largest_word && times > most_passes(kernel_.largest_word))
    record_failure(current_thread,
                   "the kernel runs for ever: " + describe_passes(block.ids.index, what, where, times),
                   where);
}

}  // namespace cpu_device
