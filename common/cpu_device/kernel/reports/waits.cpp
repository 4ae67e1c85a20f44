/// @file
/// Waits that were wrong, came too early or twice, or were left behind; and threads that exit too early.
#include "common/cpu_device/kernel/reports/reports.hpp"

#include <algorithm>

#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

namespace {

/// "warp 9 lane 0 waits at gemm.cuh:107 for pipe_cs.full[0]".
std::string what_it_waits_for(const Thread& thread) {
  return names_of({&thread}) + " waits at " + own_place(thread.wait.where) +
         (thread.wait.kind == WaitKind::mbarrier
              ? " for " + name_of(*static_cast<const Mbarrier*>(thread.wait.object))
              : "");
}

}  // namespace

std::string explain_early_exits(const Block& block) {
  constexpr size_t kMostThreads = 2;
  const auto& came = block.barriers[0].arrivals;
  std::vector<const Thread*> others;  // of warps that have lost lanes: they live, and wait elsewhere
  for (const Warp& warp : block.warps) {
    if (warp.live == warp.present) continue;
    for (const Thread* thread : warp.lanes)
      if (thread && !thread->done && thread->wait.kind != WaitKind::none &&
          std::find(came.begin(), came.end(), thread) == came.end())
        others.push_back(thread);
  }
  std::string text = ": " + names_of_lanes(block, [](const Thread& thread) { return thread.done; });
  if (others.empty()) return text;
  text += "; of the others, ";
  for (size_t i = 0; i < std::min(others.size(), kMostThreads); ++i)
    text += (i ? " and " : "") + what_it_waits_for(*others[i]);
  if (others.size() > kMostThreads) text += print(", and %zu more elsewhere", others.size() - kMostThreads);
  return text + (others.size() == 1 ? ", and it has not come here" : ", and they have not come here");
}

std::string explain_restarted_ring(const Block& block, const Thread* thread, const Thread* late) {
  const Unobserved unobserved;
  for (const Warp& warp : block.warps) {
    if (thread && &warp != thread->warp) continue;
    for (const Thread* const lane : warp.lanes) {
      if (!lane) continue;
      for (const Thread::RingPlace& place : lane->places_in_rings) {
        if (!place.restarted || (!place.is_wrong && lane != late)) continue;
        if (lane == late && late->wait.object != place.restarted && place.slots == 1) continue;
        const std::string name = name_of(*place.restarted);
        const std::string ring = name.substr(0, name.rfind('[')), end = place.restarted->end;
        const std::string pipeline = ring.substr(0, ring.size() - std::min(ring.size(), end.size() + 1));
        const char* const type = end == "full" ? "Consumer" : "Producer";
        const MadeInLoop made = made_in_loop(place.restarted_at, type, pipeline);
        // Without the object's line it is clear where a slot is left out; else a parity may not have flipped.
        const bool is_clear = !place.has_jumped && place.slot_before + 1 < place.slots;
        if (made.object.empty() && !is_clear) continue;
        std::string text = print("warp %u lane %u begins again at slot %d of ", warp.index, lane->lane,
                                 place.restarted->slot) +
                           ring + print(" with parity %u (", place.first_parity) +
                           own_place(place.restarted_at) + "), and the barriers have gone on: ";
        if (made.object.empty()) return text + "is its place in the ring made anew for each tile?";
        return text + "its " + type + " is made anew at " + made.object + ", in each round of the loop at " +
               made.loop + ": make it once, before the loop";
      }
    }
  }
  return "";
}

std::string explain_wrong_wait(const Block& block, const Thread* thread) {
  if (std::string text = explain_restarted_ring(block, thread); !text.empty()) return text;
  for (const auto& barrier : block.mbarriers) {
    const Mbarrier::EarlyWait& wait = barrier->early_wait;
    if (!wait.thread || (thread && wait.thread->warp != thread->warp)) continue;
    const auto times = [](uint64_t count) {
      return count == 0   ? std::string("never")
             : count == 1 ? std::string("once")
                          : print("%llu times", static_cast<unsigned long long>(count));
    };
    return print("the wait of warp %u lane %u for ", wait.thread->warp->index, wait.thread->lane) +
           name_of(*barrier) + print(" with parity %u (", wait.parity) + own_place(wait.where) +
           ") passed too early: its slot had " +
           (wait.filled == 0 ? "never been filled"
                             : "been filled " + times(wait.filled) + " and emptied " +
                                   (wait.emptied == wait.filled ? "as often" : times(wait.emptied)));
  }
  return "";
}

std::string explain_early_wait(const Block& block, const Thread* thread) {
  if (std::string text = explain_wrong_wait(block, thread); !text.empty()) return text;
  for (const auto& full : block.mbarriers) {
    const Mbarrier::LateLook& look = full->late_look;
    if (!look.thread || (thread && look.thread->warp != thread->warp)) continue;
    return names_of({look.releases}) + " arrives at " + name_of(*other_end(*full)) + " (" +
           own_place(look.released_at) + ") before " + names_of({look.thread}) + " has looked at " +
           name_of(*full) + " (" + own_place(look.where) +
           "): all who wait for the slot must have passed their wait before it is released";
  }
  return "";
}

std::string explain_fill_too_many(const CountedCopy& copy) {
  const Mbarrier& full = *copy.barrier;
  const std::vector<const Mbarrier*> slots = siblings_of(full);
  uint64_t fills = 0, waits = 0;
  for (const Mbarrier* slot : slots) fills += slot->phase + (slot->pending < slot->expected);
  std::vector<const Thread*> fill, wait;  // of those who wait, the ones who did so most often
  for (const Warp& warp : full.block->warps)
    for (const Thread* thread : warp.lanes) {
      if (!thread) continue;
      if (arrivals_in_ring(full, *thread)) fill.push_back(thread);
      const uint64_t own = waits_in_ring(full, *thread);
      if (own > waits) wait.clear(), waits = own;
      if (own && own == waits) wait.push_back(thread);
    }
  if (fill.empty() || !waits || fills <= waits) return "";
  const std::string who = names_of(wait), name = name_of(full);
  const Thread::Seen& last = wait.front()->last_seen;
  const bool fills_itself =
      std::find_first_of(wait.begin(), wait.end(), fill.begin(), fill.end()) != wait.end();
  const std::string text =
      print("%llu fills of ", static_cast<unsigned long long>(fills)) +
      (slots.size() > 1 ? name.substr(0, name.rfind('[')) : name) + " were begun, and " + who +
      (are_several(who) ? " have" : " has") + " waited " + times(waits) +
      (last.barrier && is_sibling(full, *last.barrier) ? " (" + own_place(last.where) + ")" : "");
  if (fills_itself) return text + ": is a wait missing, or a fill too many?";
  return text + (are_several(who) ? ": do " : ": does ") + who + " make too few steps, or " + names_of(fill) +
         " too many?";
}

std::string explain_left_behind(const Mbarrier& barrier, const std::vector<const Thread*>& late) {
  if (barrier.waits.empty()) return "";
  const unsigned rank = late.front()->ids.rank;
  const uint64_t waits = barrier.waits[rank];
  const bool is_slot = other_end(barrier);  // its ring may be shared by the warps of a warpgroup
  const auto group_of = [&](const Thread& one) {
    return one.ids.rank / (is_slot ? kWarpLanes : kWarpgroupThreads);
  };
  // A first wait with parity 1 is for the phase before the first.
  const Thread* const early = barrier.early_pass.thread;
  const bool is_first = !waits && late.front()->wait.argument == 1 && early && early->block == barrier.block;
  if ((barrier.phase - barrier.phases_seen[rank]) % 2 != is_first) return "";
  for (const Warp& warp : barrier.block->warps)
    for (const Thread* const ahead : warp.lanes) {
      if (!ahead || barrier.waits[ahead->ids.rank] <= waits) continue;
      for (const auto& other : barrier.block->mbarriers)
        for (const auto* arrivals : {&other->arrivals, &other->last_arrivals})
          for (const Mbarrier::Arrival& arrival : *arrivals) {
            if (arrival.thread != ahead || arrival.bytes || other.get() == &barrier) continue;
            // Who has arrived there itself needs nobody to do so for it.
            const auto is_late = [&](const Thread& one) {
              return std::find(late.begin(), late.end(), &one) != late.end() &&
                     group_of(one) == group_of(*ahead) && barrier.waits[one.ids.rank] == waits &&
                     (!is_first || group_of(*early) == group_of(one)) && !has_ever_arrived(*other, one);
            };
            const std::string names = names_of_lanes(*barrier.block, is_late);
            if (names.empty()) continue;
            return names_of({ahead}) + " passed this wait, and arrived at " + name_of(*other) + " (" +
                   own_place(arrival.where) + "), before " + names + " had looked at " + name_of(barrier) +
                   ", which has gone on since: all of them must have passed the wait before one thread "
                   "arrives for them";
          }
    }
  return "";
}

std::string explain_repeated_wait(const Block& block) {
  if (const std::string early = explain_early_wait(block, nullptr); !early.empty()) return "\n  " + early;
  for (const auto& barrier : block.mbarriers) {
    const Mbarrier::RepeatedWait& wait = barrier->repeated_wait;
    if (!wait.thread) continue;
    return print("\n  warp %u lane %u waits at ", wait.thread->warp->index, wait.thread->lane) +
           own_place(wait.where) + " for " + name_of(*barrier) +
           print(" with parity %u: that is phase %llu, which it had waited for before",
                 static_cast<unsigned>(wait.phase % 2), static_cast<unsigned long long>(wait.phase));
  }
  return "";
}

namespace {

/// The mistake in a count that lets this end of a slot go on by two phases may be that of the other end.
std::string count_of_either_end(const Mbarrier& barrier) {
  const auto explain = [](const Mbarrier& one) {
    return explain_count(one, one.earlier_arrivals, one.last_arrivals);
  };
  const Mbarrier* const other = other_end(barrier);
  std::string text = explain(barrier);
  if (text.empty() && other) text = explain(*other);
  const std::string ended = "; different threads ended the last two";
  if (text.empty() || explain(barrier) == text) return text;
  return ended + " of " + name_of(*other) + text.substr(ended.size());
}

}  // namespace

std::string explain_two_phases(const Mbarrier& barrier, bool asks_for_count) {
  return print("\n  phase %llu ended with the arrivals of",
               static_cast<unsigned long long>(barrier.phase - 2)) +
         list(barrier.earlier_arrivals) +
         print("; phase %llu of", static_cast<unsigned long long>(barrier.phase - 1)) +
         list(barrier.last_arrivals) + (asks_for_count ? count_of_either_end(barrier) : "");
}

std::string explain_exit(const Block& block) {
  const std::string where =
      block.last_call.line ? " (its last call seen was at " + to_string(block.last_call) + ")" : "";
  return print("block %u must reach a last cluster_sync, or wait for what others do there, before it exits%s",
               block.ids.rank_in_cluster, where.c_str());
}

}  // namespace cpu_device
