#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {

bool is_at_mbarrier(const Thread& thread) {
  const bool waits = thread.wait.kind == WaitKind::mbarrier || thread.wait.kind == WaitKind::poll;
  return !thread.done && waits && thread.wait.object;
}

const Mbarrier& mbarrier_of(const Thread& thread) {
  return *static_cast<const Mbarrier*>(thread.wait.object);
}

uint64_t seen_by(const Mbarrier& barrier, const Thread& thread) {
  return barrier.phases_seen.empty() ? 0 : barrier.phases_seen[thread.ids.rank];
}

bool is_unused(const Mbarrier& barrier) {
  return !barrier.phase && barrier.arrivals.empty() && !barrier.missing_bytes;
}

bool is_sibling(const Mbarrier& one, const Mbarrier& other) {
  if (&one == &other) return true;
  const std::string a = name_of(one), b = name_of(other);
  return one.block == other.block && a.rfind('[') != a.npos &&
         a.compare(0, a.rfind('['), b, 0, b.rfind('[')) == 0;
}

std::vector<const Mbarrier*> siblings_of(const Mbarrier& barrier) {
  std::vector<const Mbarrier*> siblings;
  for (const auto& other : barrier.block->mbarriers)
    if (is_sibling(barrier, *other)) siblings.push_back(other.get());
  return siblings;
}

std::string slot_of_ring(const Mbarrier& barrier) {
  const std::string name = name_of(barrier);
  return siblings_of(barrier).size() > 1 ? "a slot of " + name.substr(0, name.rfind('[')) : name;
}

uint64_t waits_in_ring(const Mbarrier& barrier, const Thread& thread) {
  uint64_t waits = 0;
  for (const Mbarrier* slot : siblings_of(barrier))
    if (!slot->waits.empty()) waits += slot->waits[thread.ids.rank];
  return waits;
}

uint64_t arrivals_in_ring(const Mbarrier& barrier, const Thread& thread) {
  uint64_t arrivals = 0;
  for (const Mbarrier* slot : siblings_of(barrier))
    if (has_ever_arrived(*slot, thread)) arrivals += slot->times_arrived[thread.number];
  return arrivals;
}

const Mbarrier* counterpart_in(const Block& block, const Mbarrier& barrier) {
  const Mbarrier* found = nullptr;
  for (const auto& other : block.mbarriers)
    if (other->offset == barrier.offset) found = other.get();  // the last one that was initialised there
  return found;
}

const Mbarrier* turn_of_others(const Mbarrier& barrier, const Thread& thread) {
  if (!other_end(barrier) || !barrier.is_full || thread.block != barrier.block) return nullptr;
  const auto waits_in_ring = [&](const Thread& one) {
    const auto& all = barrier.block->mbarriers;
    return std::any_of(all.begin(), all.end(), [&](const auto& slot) {
      const bool has_waited = !slot->waits.empty() && slot->waits[one.ids.rank];
      return has_waited && (slot.get() == &barrier || is_sibling(barrier, *slot));
    });
  };
  for (const Warp& warp : thread.block->warps) {
    if (warp.index / kWarpgroupWarps == thread.warp->index / kWarpgroupWarps) continue;
    for (const Thread* const other : warp.lanes) {
      if (!other || !is_at_mbarrier(*other)) continue;
      const Mbarrier& turn = mbarrier_of(*other);
      if (turn.block != barrier.block || !turn.times_arrived.empty() || !is_unused(turn) || other_end(turn) ||
          waits_in_ring(*other))
        continue;
      // There are turns of others, too: this thread has had its own.
      const auto& all = barrier.block->mbarriers;
      const bool has_turn = std::any_of(all.begin(), all.end(), [&](const auto& one) {
        return one.get() != &turn && is_sibling(turn, *one) && !one->waits.empty() &&
               one->waits[thread.ids.rank];
      });
      if (has_turn) return &turn;
    }
  }
  return nullptr;
}

bool has_missed(const Mbarrier& barrier, const Thread& thread) {
  if (seen_by(barrier, thread) >= barrier.phase || turn_of_others(barrier, thread)) return false;
  for (size_t other = 0; other < barrier.phases_seen.size(); ++other)
    if (other / kWarpLanes != thread.ids.rank / kWarpLanes && barrier.phases_seen[other] >= barrier.phase)
      return false;
  return true;
}

bool came(const Mbarrier& barrier, const Thread* thread) {
  return std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(),
                     [&](const auto& arrival) { return arrival.thread == thread; });
}

std::vector<const Thread*> absent_from(const Mbarrier& barrier) {
  std::vector<const Thread*> absent;
  for (const Mbarrier::Arrival& earlier : with_bytes(barrier.last_arrivals, false))
    if (!came(barrier, earlier.thread)) absent.push_back(earlier.thread);
  return absent;
}

uint32_t blocks_that_share(const Mbarrier& one_of_its_ends) {
  uint32_t mask = 0;
  for (const Mbarrier* end : {&one_of_its_ends, other_end(one_of_its_ends)})
    if (end)
      for (const auto* arrivals : {&end->last_arrivals, &end->arrivals})
        for (const Mbarrier::Arrival& arrival : *arrivals) mask |= arrival.multicast_mask;
  return mask;
}

std::string place_of_arrival(const Mbarrier& barrier, const Thread& thread) {
  for (const auto* arrivals : {&barrier.arrivals, &barrier.last_arrivals})
    for (const Mbarrier::Arrival& arrival : *arrivals)
      if (!arrival.bytes &&
          arrival.thread->ids.rank / kWarpgroupThreads == thread.ids.rank / kWarpgroupThreads)
        return " (" + own_place(arrival.where) + ")";
  return "";
}

namespace {

/// "gemm.cuh:73 for full[0]".
std::string thing_waited_for(const Thread& thread) {
  const std::string where = own_place(thread.wait.where);
  return is_at_mbarrier(thread) ? where + " for " + name_of(mbarrier_of(thread))
                                : where + " in " + thread.wait.what + number_of_barrier(thread.wait);
}

}  // namespace

std::string where_now(const std::vector<const Thread*>& threads, bool are_lanes) {
  const Thread& first = *threads.front();
  const bool several = are_lanes || are_several(names_of(threads));
  const bool all_done =
      std::all_of(threads.begin(), threads.end(), [](const Thread* thread) { return thread->done; });
  if (all_done) return several ? "have exited" : "has exited";
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
  const std::string now = where_now(threads);
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
