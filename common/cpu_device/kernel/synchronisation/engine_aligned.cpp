/// @file
/// A line of the source is not enough to tell two instructions apart: a function that is called from both
/// sides of a branch has one line, and two halves of a warp execute it one after the other. So the calls on
/// the stack are compared, too.
#include "common/cpu_device/kernel/engine_aligned.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

std::string joined(const std::vector<std::string>& calls) {
  std::string text;
  for (const std::string& call : calls) text += (text.empty() ? "" : ", called from ") + call;
  return text;
}

/// Of code that a compiler has made of several places it may not know the line.
bool has_unknown_lines(const std::vector<std::string>& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const std::string& call) {
    return call.find(":0 in ") != std::string::npos || call.find(":? in ") != std::string::npos;
  });
}

std::string find_difference(const CallChain& mine, const CallChain& others, const std::string& other) {
  std::vector<std::string> a = source_calls(mine.addresses, mine.count);
  std::vector<std::string> b = source_calls(others.addresses, others.count);
  if (a.empty() || b.empty() || a == b || has_unknown_lines(a) || has_unknown_lines(b)) return "";
  // From where on outwards both came the same way says nothing.
  while (a.size() > 1 && b.size() > 1 && a.back() == b.back()) {
    a.pop_back();
    b.pop_back();
  }
  return joined(a) + "; " + other + " by " + joined(b);
}

}  // namespace

// Frames are linked where sources are compiled with -fno-omit-frame-pointer. AddressSanitizer would take what
// is read here for foreign memory.
[[gnu::noinline, gnu::no_sanitize_address]] CallChain calls_to_here([[maybe_unused]] const Thread& thread) {
  CallChain chain;
#if defined(__x86_64__) || defined(__aarch64__)
  const auto* frame = static_cast<void* const*>(__builtin_frame_address(0));
  while (chain.count < CallChain::kMax && frame < thread.body_frame) {
    chain.addresses[chain.count++] = reinterpret_cast<uintptr_t>(frame[1]);
    const auto* outer = static_cast<void* const*>(frame[0]);
    if (outer <= frame) break;
    frame = outer;
  }
#endif
  return chain;
}

const void* outer_call(const Thread& thread, const void* call) {
  const CallChain chain = calls_to_here(thread);
  for (unsigned i = 0; i + 1 < chain.count; ++i)
    if (chain.addresses[i] == reinterpret_cast<uintptr_t>(call))
      return reinterpret_cast<const void*>(chain.addresses[i + 1]);
  return nullptr;
}

std::string difference(const CallChain& mine, const CallChain& others, const std::string& other) {
  if (mine == others) return "";
  // Finding lines takes long, and a loop asks again and again: the last pairs that did not differ.
  struct Pair {
    CallChain mine, others;
  };
  static thread_local Pair harmless[16];
  static thread_local unsigned next = 0, found = 0;  // lanes ask for the same pair one after the other
  for (unsigned i = 0; i < std::size(harmless); ++i) {
    const unsigned at = (found + i) % std::size(harmless);
    if (!(harmless[at].mine == mine && harmless[at].others == others)) continue;
    found = at;
    return "";
  }
  const Unobserved unobserved;
  static std::mutex mutex;
  static std::map<std::vector<uintptr_t>, std::string> known;
  std::vector<uintptr_t> key(mine.addresses, mine.addresses + mine.count);
  key.push_back(0);
  key.insert(key.end(), others.addresses, others.addresses + others.count);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.try_emplace(std::move(key));
  if (is_new) entry->second = find_difference(mine, others, other);
  if (entry->second.empty()) harmless[next++ % std::size(harmless)] = {mine, others};
  return entry->second;
}

void execute_aligned(Thread& thread, const char* what, Location where) {
  Cluster& cluster = thread.cluster;
  Warp& warp = *thread.warp;
  const CallChain calls = calls_to_here(thread);
  const uint64_t position = thread.aligned_steps++ - warp.forgotten_aligned_steps;
  if (position == warp.aligned_steps.size()) warp.aligned_steps.push_back({what, where, calls, thread.lane});
  AlignedStep& step = warp.aligned_steps[position];
  const bool is_same = step.what == what || std::strcmp(step.what, what) == 0;
  if (!is_same || !(step.where == where)) {
    cluster.fail(thread,
                 print("warp divergence: this lane executes %s, and lane %u of its warp %s at ", what,
                       step.first_lane, step.what) +
                     to_string(step.where) + "; all 32 lanes must execute the same one together",
                 where);
  }
  if (const std::string calls_differ = difference(calls, step.calls, "others"); !calls_differ.empty()) {
    cluster.fail(thread,
                 print("warp divergence: the lanes of one warp come to %s by different calls, so they do not "
                       "execute it together: this lane by ",
                       what) +
                     calls_differ,
                 where);
  }
  ++step.lanes;
  const auto all = static_cast<unsigned>(__builtin_popcount(warp.present));
  while (!warp.aligned_steps.empty() && warp.aligned_steps.front().lanes == all) {
    warp.aligned_steps.pop_front();
    ++warp.forgotten_aligned_steps;
  }
}

void check_aligned_at_exit(Thread& thread) {
  const Warp& warp = *thread.warp;
  const uint64_t position = thread.aligned_steps - warp.forgotten_aligned_steps;
  if (position >= warp.aligned_steps.size()) return;
  const AlignedStep& missed = warp.aligned_steps[position];
  thread.cluster.fail(thread,
                      print("the thread exits without the %s that lane %u of its warp executed at ",
                            missed.what, missed.first_lane) +
                          to_string(missed.where) + "; all 32 lanes must execute it together",
                      {});
}

}  // namespace cpu_device
