#include "common/cpu_device/kernel/deadlock_words.hpp"

#include <algorithm>
#include <cstring>

#include "common/cpu_device/kernel/deadlock_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"

namespace cpu_device {
namespace {

/// "gemm.cuh:73 for full[0]".
std::string thing_waited_for(const Thread& thread) {
  const std::string where = own_place(thread.wait.where);
  return is_at_mbarrier(thread) ? where + " for " + name_of(mbarrier_of(thread))
                                : where + " in " + thread.wait.what + number_of_barrier(thread.wait);
}

}  // namespace

std::string where_now(const std::vector<const Thread*>& threads, bool counts_steps, bool are_lanes) {
  const Thread& first = *threads.front();
  const bool several = are_lanes || are_several(names_of(threads));
  const bool all_done =
      std::all_of(threads.begin(), threads.end(), [](const Thread* thread) { return thread->done; });
  if (all_done)
    return std::string(several ? "have exited" : "has exited") +
           (!counts_steps ? ""
            : several     ? ": they made fewer steps than those who wait"
                          : ": it made fewer steps than those who wait");
  // Those who wait for one thing together, the most first: not all need wait for the same.
  std::vector<std::vector<const Thread*>> groups;
  for (const Thread* thread : threads) {
    if (thread->done) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return thing_waited_for(*group.front()) == thing_waited_for(*thread);
    });
    if (same == groups.end())
      groups.push_back({thread});
    else
      same->push_back(thread);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& one, const auto& other) { return one.size() > other.size(); });
  if (groups.size() == 1 && groups.front().size() == threads.size())
    return (several ? "now wait at " : "now waits at ") + thing_waited_for(first);
  std::string text;
  for (const auto& group : groups) {
    if (&group - &groups[0] == kMostGroups) return text + ", others elsewhere";
    const std::string who = names_of(group);
    text += (text.empty() ? "of these " : ", ") + who +
            (are_several(who) ? " now wait at " : " now waits at ") + thing_waited_for(*group.front());
  }
  return text;
}

std::string where_others_wait(const std::vector<const Thread*>& threads) {
  const std::string now = where_now(threads, /*counts_steps=*/false);
  return now.rfind("now ", 0) == 0 ? names_of(threads) + " " + now : now;
}

std::string number_of_barrier(const Wait& wait) {
  const bool is_named = wait.kind == WaitKind::block_barrier && wait.argument;
  return is_named ? print(" %u", static_cast<unsigned>(wait.argument)) : "";
}

std::string times(uint64_t count) {
  return count == 1   ? "once"
         : count == 2 ? "twice"
                      : print("%llu times", static_cast<unsigned long long>(count));
}

std::string ranges_of_blocks(const std::vector<const Block*>& blocks) {
  std::string text = blocks.size() > 1 ? " blocks" : " block";
  for (size_t i = 0; i < blocks.size(); ++i) {
    size_t last = i;
    while (last + 1 < blocks.size() &&
           blocks[last + 1]->ids.rank_in_cluster == blocks[last]->ids.rank_in_cluster + 1)
      ++last;
    if (last == i + 1) last = i;  // two are named both
    const auto index = [&](size_t at) { return describe(*blocks[at]).substr(std::strlen("block")); };
    text += (i ? "," : "") + index(i) + (last > i ? " to" + index(last) : "");
    i = last;
  }
  return text;
}

}  // namespace cpu_device
