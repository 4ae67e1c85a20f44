/// @file
/// Why arrivals at an mbarrier do not come: who has exited, waits elsewhere or arrived at another barrier.
#include <algorithm>
#include <cstring>
#include <set>

#include "common/cpu_device/kernel/deadlock/cause.hpp"
#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/deadlock/wait_graph.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {
namespace {

/// No thread has waited there.
bool is_unheard(const Mbarrier& barrier) { return barrier.phases_seen.empty() && barrier.waiting.empty(); }

bool is_of_warp_that_arrives(const Thread& thread, const Mbarrier& barrier) {
  return std::any_of(std::begin(thread.warp->lanes), std::end(thread.warp->lanes),
                     [&](const Thread* lane) { return lane && has_ever_arrived(barrier, *lane); });
}

/// "; warp 2 arrived twice at full[1] (gemm.cuh:82)": of a barrier that nobody has come to, who came to the
/// same end of other slots, or from another block to the barrier at the same place of others.
std::string arrivals_elsewhere(const WaitGraph& graph, const Mbarrier& barrier) {
  std::string text;
  int named = 0;
  for (const Block* block : graph.blocks()) {
    for (const auto& other : block->mbarriers) {
      if (other.get() == &barrier) continue;
      const bool is_own = block == barrier.block;
      if (is_own ? !is_sibling(barrier, *other) : other->offset != barrier.offset) continue;
      std::vector<const Thread*> those;
      for (const Thread* thread : graph.threads())
        if (has_ever_arrived(*other, *thread) && (is_own || thread->block != block || is_unheard(*other)))
          those.push_back(thread);
      if (those.empty()) continue;
      if (named++ == kMostGroups) return text + ", and elsewhere";
      const std::string where = place_of_arrival(*other, *those.front());
      text += "; " + names_of(those) + " arrived " + times(other->times_arrived[those.front()->number]) +
              " at " + name_of(*other) + (is_own ? "" : " of " + describe(*block)) + where;
    }
  }
  return text;
}

/// In its own block. Of waits that passed on the first lap it is not known whose they were.
bool has_waited_at_other_end(const Mbarrier& barrier, const Thread& thread) {
  const Mbarrier* const other = other_end(barrier);
  const Mbarrier* const own = other ? counterpart_in(*thread.block, *other) : nullptr;
  return own && (barrier.is_full ? !own->phases_seen.empty() : seen_by(*own, thread) > 0);
}

/// "; warps 0-1 arrived twice at empty[1] (gemm.cuh:60): ...": of a slot that nobody has come to, those who
/// came again and again to another one, although their waits go round the ring.
std::string arrived_at_one_slot(const WaitGraph& graph, const Mbarrier& barrier) {
  if (!other_end(barrier)) return "";
  for (const Mbarrier* slot : siblings_of(barrier)) {
    std::vector<const Thread*> those;
    for (const Thread* thread : graph.threads())
      if (has_ever_arrived(*slot, *thread) && slot->times_arrived[thread->number] > 1 &&
          has_waited_at_other_end(barrier, *thread) && has_waited_at_other_end(*slot, *thread))
        those.push_back(thread);
    if (those.empty()) continue;
    const uint32_t often = slot->times_arrived[those.front()->number];
    std::erase_if(those, [&](const Thread* one) { return slot->times_arrived[one->number] != often; });
    return "; " + names_of(those) + " arrived " + times(often) + " at " + name_of(*slot) +
           place_of_arrival(*slot, *those.front()) + ": is the index there that of the slot?";
  }
  return "";
}

/// Has it exited, or does it wait where all come together, as the other does, which has arrived?
bool is_behind_like(const Thread& here, const Thread& other) {
  if (here.done) return true;
  return here.wait.kind == WaitKind::block_barrier && other.wait.kind == WaitKind::block_barrier &&
         !other.done && here.wait.where == other.wait.where;
}

/// "; warps 0-7 of block (0,0,0) arrived at its own (gemm.cuh:137), ...": of a barrier that nobody has come
/// to, those who came to the one at the same place of their own block, and are where those of this block
/// are, too: behind the arrival. Nothing if these may still come.
std::string arrived_in_other_blocks(const WaitGraph& graph, const Mbarrier& barrier) {
  std::vector<const Block*> blocks;
  std::vector<const Thread*> those, silent;  // of the first such block, and of the block that waits
  for (const Thread* thread : graph.threads()) {
    const Mbarrier* const other =
        thread->block == barrier.block ? nullptr : counterpart_in(*thread->block, barrier);
    if (!other || !has_ever_arrived(*other, *thread)) continue;
    if (blocks.empty() || blocks.back() != thread->block) blocks.push_back(thread->block);
    if (thread->block != blocks.front()) continue;
    const Thread& here = *barrier.block->warps[thread->warp->index].lanes[thread->lane];
    const bool is_alike = silent.empty() || (here.done ? silent.front()->done
                                                       : !silent.front()->done &&
                                                             silent.front()->wait.where == here.wait.where);
    if (!is_alike || !is_behind_like(here, *thread)) return "";
    those.push_back(thread);
    silent.push_back(&here);
  }
  if (those.empty()) return "";
  const auto came = [&](const Thread& one) {
    return std::find(those.begin(), those.end(), &one) != those.end();
  };
  return "; " + names_of_lanes(*blocks.front(), came) + " of" + ranges_of_blocks(blocks) + " arrived at " +
         (blocks.size() > 1 ? "theirs" : "its own") +
         place_of_arrival(*counterpart_in(*blocks.front(), barrier), *those.front()) + ", and those of " +
         describe(*barrier.block) + " " + where_now(silent, /*are_lanes=*/those.size() > 1) +
         ": does this block need this wait, or should they arrive here, too?";
}

/// Of threads that release slots, and wait for one more than there are, holding all.
std::string all_slots_held(const WaitGraph& graph, const Mbarrier& empty) {
  if (!other_end(empty) || empty.is_full || !empty.arrivals.empty()) return "";
  const std::vector<const Mbarrier*> slots = siblings_of(empty);
  const auto releases_of_group = [&](const Thread& thread) {
    uint64_t most = 0;
    for (const Thread* other : graph.threads()) {
      if (other->block != empty.block ||
          other->ids.rank / kWarpgroupThreads != thread.ids.rank / kWarpgroupThreads)
        continue;
      most = std::max(most, arrivals_in_ring(empty, *other));
    }
    return most;
  };
  std::vector<const Thread*> those;
  uint64_t waited = 0, released = 0;
  std::string where;
  for (const Thread* thread : graph.threads()) {
    if (thread->block != empty.block || thread->done || !is_at_mbarrier(*thread)) continue;
    const auto filled = [&](const Mbarrier* slot) { return other_end(*slot) == &mbarrier_of(*thread); };
    if (std::none_of(slots.begin(), slots.end(), filled)) continue;
    uint64_t waits = 0;
    for (const Mbarrier* slot : slots)
      if (other_end(*slot)) waits += seen_by(*other_end(*slot), *thread);
    const uint64_t releases = releases_of_group(*thread);
    // Who shares the ring, or waits for a phase twice, has not waited for each phase once.
    if (waits != waits_in_ring(mbarrier_of(*thread), *thread)) continue;
    if (!releases || waits < releases + slots.size()) continue;
    if (those.empty()) waited = waits, released = releases;
    if (waits != waited || releases != released) continue;
    those.push_back(thread);
    for (const Mbarrier* slot : slots)
      if (const std::string place = place_of_arrival(*slot, *thread); where.find(place) == where.npos)
        where += place;
  }
  if (those.empty()) return "";
  const std::string who = names_of(those);
  const bool several = are_several(who);
  return who + (several ? " have" : " has") + " waited " + times(waited) + " for " +
         slot_of_ring(mbarrier_of(*those.front())) + ", and released " + times(released) + where +
         (slots.size() > 1 && waited / 2 == released ? ", one release for two waits" : "") +
         (several ? ": they hold" : ": it holds") +
         (slots.size() > 1 ? print(" all %zu slots, and", slots.size()) : " the slot, and") +
         (several ? " wait" : " waits") + " for one more at " + own_place(those.front()->wait.where) +
         ": is a release missing, or a wait too many?";
}

/// The same of a cuda::pipeline, all of whose threads acquire and release.
std::string held_in_pipeline(const WaitGraph& graph, const Mbarrier& consumed) {
  const std::vector<const Thread*>& waiting = graph.root()->waiting;
  const std::vector<const Mbarrier*> slots = siblings_of(consumed);
  if (graph.nodes().size() != 1 || waiting.size() != consumed.expected ||
      waiting.size() != consumed.block->ids.threads)
    return "";
  for (const Mbarrier* slot : slots)
    for (const Thread* thread : waiting)
      if (!slot->times_arrived.empty() || slot->waits.empty() || slot->waits[thread->ids.rank] != 1)
        return "";
  const std::string who = names_of(waiting);
  const bool several = are_several(who);
  return ": " + who + (several ? " have" : " has") + " acquired " +
         (slots.size() > 1 ? print("all %zu slots", slots.size()) : "the slot") +
         (several ? ", and acquire" : ", and acquires") + " one more before any release";
}

/// Of threads that fill slots and empty them themselves, and fill one more than there are.
std::string held_by_those_who_wait(const WaitGraph& graph, const Mbarrier& empty) {
  if (empty.name && std::strcmp(empty.name, "pipeline.consumed") == 0) return held_in_pipeline(graph, empty);
  const Mbarrier* const full = other_end(empty);
  const std::vector<const Thread*>& waiting = graph.root()->waiting;
  if (!full || empty.is_full || graph.nodes().size() != 1 || waiting.size() != empty.expected) return "";
  const bool have_filled = std::all_of(
      waiting.begin(), waiting.end(), [&](const Thread* thread) { return has_ever_arrived(*full, *thread); });
  if (!have_filled) return "";
  for (const Mbarrier* slot : siblings_of(empty))
    if (!slot->times_arrived.empty()) return "";
  const std::string who = names_of(waiting);
  return ": " + who + (are_several(who) ? " have" : " has") + " filled " +
         (siblings_of(empty).size() > 1 ? print("all %zu slots", siblings_of(empty).size()) : "the slot") +
         (are_several(who) ? ", and release one only behind this wait"
                           : ", and releases one only behind this wait") +
         ": is one slot more filled ahead than there are?";
}

/// Of a barrier without slots that each block of a cluster waits for at once: whoever arrives at one may be
/// those who wait for another.
std::string first_wait_of_each_block(const WaitGraph& graph, const Mbarrier& barrier) {
  if (other_end(barrier) || barrier.early_pass.thread || barrier.phase) return "";
  std::set<const Block*> blocks, waiting;
  for (const Thread* thread : graph.threads()) {
    blocks.insert(thread->block);
    if (!is_at_mbarrier(*thread)) continue;
    const Mbarrier& other = mbarrier_of(*thread);
    if (other.offset == barrier.offset && other.block == thread->block && is_unused(other))
      waiting.insert(thread->block);
  }
  if (blocks.size() < 2 || waiting.size() != blocks.size()) return "";
  return print(
      "; each of the %zu blocks waits for its own, and if those who wait are the ones who arrive, "
      "nobody can before this wait: the first wait must have parity 1, which passes at once",
      blocks.size());
}

/// Those who wait for bytes of others may be the ones who arrive, and those who wait here the ones who send.
std::string bytes_behind_first_wait(const WaitGraph& graph) {
  for (const WaitGraph::Node& node : graph.nodes()) {
    if (!graph.may_wait_before_sending(node, *graph.root())) continue;
    const Mbarrier& bytes = mbarrier_of(*node.waiting.front());
    const std::string who = names_of(node.waiting);
    return "; " + who + (are_several(who) ? " wait" : " waits") +
           print(" for %lld bytes at ", static_cast<long long>(bytes.missing_bytes)) + name_of(bytes) + " (" +
           own_place(node.waiting.front()->wait.where) +
           "), which nobody has sent: if they are sent only behind this wait, must the first wait have "
           "parity 1, which passes at once, or is an arrival before them missing?";
  }
  return "";
}

/// Nor at the barriers at the same place in other blocks.
bool is_unheard_in_all_blocks(const WaitGraph& graph, const Mbarrier& barrier) {
  const std::vector<const Block*> all = graph.blocks();
  return std::all_of(all.begin(), all.end(), [&](const Block* block) {
    const Mbarrier* const other = counterpart_in(*block, barrier);
    return !other || is_unheard(*other);
  });
}

/// Those of the threads that have exited which may be awaited, as far as their number tells, or an arrival
/// of their warp. A block may have warps without a role.
void keep_awaited(const Mbarrier& barrier, std::vector<const Thread*>& gone) {
  std::set<const Warp*> warps;
  for (const Thread* thread : gone) warps.insert(thread->warp);
  if (barrier.arrivals.empty() || gone.size() == barrier.pending || warps.size() == barrier.pending) return;
  std::erase_if(gone, [&](const Thread* thread) { return !is_of_warp_that_arrives(*thread, barrier); });
}

/// Has a thread that waits seen phases end two at a time? Then others went on without it.
std::string passed_by(const WaitGraph& graph, const Mbarrier& barrier) {
  for (const Thread* thread : graph.root()->waiting) {
    const uint64_t passed = barrier.phases_passed.empty() ? 0 : barrier.phases_passed[thread->ids.rank];
    if (passed)
      return print(
          "; %llu phases had ended before warp %u lane %u looked: those who arrive do not wait for it",
          static_cast<unsigned long long>(passed), thread->warp->index, thread->lane);
  }
  return "";
}

/// "no arrival from block (1,0,0)": all threads of this block who may arrive have. Where the slot is filled
/// by multicasts, of the blocks that receive them.
std::string of_other_blocks(const WaitGraph& graph, const Mbarrier& barrier, const Mbarrier& full) {
  const uint32_t mask = blocks_that_share(full);
  std::string silent;
  std::set<const Block*> blocks;
  for (const Thread* thread : graph.threads()) {
    const bool came = std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(), [&](const auto& arrival) {
      return arrival.thread->block == thread->block;
    });
    const bool may_come = !mask || mask >> thread->block->ids.rank_in_cluster & 1;
    if (!came && may_come && blocks.insert(thread->block).second)
      silent += (silent.empty() ? "" : ", ") + describe(*thread->block);
  }
  return silent.empty() ? "" : "no arrival from " + silent;
}

/// Of an end of a slot that nobody has waited for, which comes before an arrival at the root: where those are
/// who have not exited, and do not wait at the root themselves.
Reason who_still_could(const WaitGraph& graph, const Mbarrier& other_end_of_root) {
  const std::vector<const Thread*>& waiting = graph.root()->waiting;
  std::vector<const Thread*> others;
  for (const Thread* thread : graph.threads())
    if (thread->block == other_end_of_root.block && !thread->done &&
        WaitGraph::waits_for(*thread) != graph.root()->key)
      others.push_back(thread);
  const std::string warps = print("%zu warps", other_end_of_root.block->warps.size());
  if (others.empty())
    return waiting.size() < other_end_of_root.block->ids.threads
               ? "; all other threads of the block, which has " + warps + ", have exited"
               : "; all threads of the block, which has " + warps + ", wait here";
  const WaitGraph::Node* const node = graph.node_of(WaitGraph::waits_for(*others.front()));
  const bool wait_together = node && node->waiting == others && is_at_mbarrier(*others.front());
  if (!wait_together) return "; " + where_others_wait(others);
  const std::string who = names_of(others);
  const std::string text = "; only " + who + " still could, and " + where_now(others);
  // They need those who wait for them.
  const std::vector<WaitGraph::Comer> comers = graph.comers_to(*node);
  const auto is_waiting = [&](const WaitGraph::Comer& comer) {
    return std::find(waiting.begin(), waiting.end(), comer.thread) != waiting.end();
  };
  if (comers.empty() || !std::all_of(comers.begin(), comers.end(), is_waiting)) return text;
  return {text + ", and so for those who wait here: should another thread wait for " +
              name_of(other_end_of_root) + "? The block has " + warps,
          /*names_mistake=*/true};
}

/// ": they have waited 4 times, released no slot, and wait again: ...": of threads that hold all slots, of
/// which nobody has ever released one.
std::string released_none(const Mbarrier& barrier, const Mbarrier& other_end,
                          const std::vector<const Thread*>& silent) {
  const uint64_t waited = waits_in_ring(other_end, *silent.front());
  const bool wait_again =
      !barrier.is_full && std::all_of(silent.begin(), silent.end(), [&](const Thread* thread) {
        return is_at_mbarrier(*thread) && is_sibling(other_end, mbarrier_of(*thread)) &&
               waits_in_ring(other_end, *thread) == waited;
      });
  const std::vector<const Mbarrier*> slots = siblings_of(barrier);
  const bool nobody_has = std::all_of(slots.begin(), slots.end(),
                                      [](const Mbarrier* slot) { return slot->times_arrived.empty(); });
  if (!wait_again || !nobody_has || waited < slots.size()) return "";
  const bool several = are_several(names_of(silent));
  return (several ? ": they have waited " : ": it has waited ") + times(waited) + ", released no slot, and " +
         (several ? "wait" : "waits") + " again: is a release missing between the waits?";
}

/// Those who wait for the other end of a slot are the ones who must arrive at this end.
Reason of_other_end(const WaitGraph& graph, const Mbarrier& barrier) {
  const Mbarrier* const other = other_end(barrier);
  const Reason unknown = std::string();
  if (!other) return unknown;
  std::vector<const Thread*> have_waited;
  for (const Thread* thread : graph.threads())
    if (thread->block == barrier.block && seen_by(*other, *thread)) have_waited.push_back(thread);
  if (have_waited.empty()) {
    if (graph.node_of(other) || !is_unheard_in_all_blocks(graph, *other)) return unknown;
    const Reason others = who_still_could(graph, *other);
    return {
        "no thread has waited for " + name_of(*other) + ", which comes before an arrival here" + others.text,
        others.names_mistake};
  }
  // Of a warpgroup that releases a slot, one thread may do so for all.
  std::vector<const Thread*> silent, both;
  for (const Thread* thread : have_waited) {
    const bool group_came =
        std::any_of(barrier.arrivals.begin(), barrier.arrivals.end(), [&](const auto& one) {
          return one.thread->block == thread->block &&
                 one.thread->ids.rank / kWarpgroupThreads == thread->ids.rank / kWarpgroupThreads;
        });
    if (group_came) continue;
    silent.push_back(thread);
    if (WaitGraph::waits_for(*thread) == &barrier) both.push_back(thread);
  }
  if (silent.empty()) return of_other_blocks(graph, barrier, *other);
  const std::string names = names_of(silent);
  std::string text = names + " waited for " + name_of(*other);
  if (both.empty()) {
    const std::string release = released_none(barrier, *other, silent);
    return {text + ", and " + where_now(silent) + release, /*names_mistake=*/!release.empty()};
  }
  return text + (are_several(names) ? ", and have not arrived here; " : ", and has not arrived here; ") +
         names_of(both) +
         " of these waits here, for the arrival that it owes itself, or another thread of its "
         "warpgroup: release the slot first, and wait then";
}

/// Where nobody is known who should arrive, too: those who wait elsewhere, and not for this. If there are
/// none, and all have arrived who ever did, the count may be wrong.
Reason elsewhere_or_count(const WaitGraph& graph, const Mbarrier& barrier) {
  const auto arrivals = with_bytes(barrier.arrivals, false);
  if (arrivals.empty()) return std::string();
  std::vector<const Thread*> elsewhere;
  for (const WaitGraph::Node& node : graph.nodes()) {
    const Thread& first = *node.waiting.front();
    // What only begins behind this, and the same barrier of other blocks, may come to the same.
    const bool is_behind = is_at_mbarrier(first) && graph.is_unknown(node) && other_end(mbarrier_of(first));
    const auto is_the_same = [&](const WaitGraph::Node& one) {
      const Thread& waits = *one.waiting.front();
      return is_at_mbarrier(waits) && mbarrier_of(waits).offset == barrier.offset;
    };
    const auto& nodes = graph.nodes();
    const bool waits_for_this =
        is_the_same(node) || std::any_of(nodes.begin(), nodes.end(), [&](const auto& one) {
          return is_the_same(one) && graph.depends_on(node, one);
        });
    if (!is_behind && !waits_for_this)
      elsewhere.insert(elsewhere.end(), node.waiting.begin(), node.waiting.end());
  }
  if (!elsewhere.empty()) return "; " + where_others_wait(elsewhere);
  for (const Thread* thread : graph.threads())
    if (has_ever_arrived(barrier, *thread) && !came(barrier, thread)) return std::string();
  return {", and no other thread ever has: is the count of " + print("%u (", barrier.expected) +
              place_of_initialisation(barrier) + ") too large, or an arrival missing?",
          /*names_mistake=*/true};
}

/// ": they waited 9 times for a slot of pipe_lc.full, and released 6 times: is a release missing?": of
/// threads that came in the phase before, and have all exited, or left their role. How often others came to
/// this ring, where they came more often.
std::string steps_of_exited(const WaitGraph& graph, const Mbarrier& barrier,
                            const std::vector<const Thread*>& exited) {
  if (!std::all_of(exited.begin(), exited.end(),
                   [](const Thread* thread) { return WaitGraph::has_left_its_role(*thread); }))
    return "";
  const Mbarrier* const other = other_end(barrier);
  const bool releases = other && !barrier.is_full;
  const auto arrivals_of = [&](const Thread& thread) {
    if (other) return arrivals_in_ring(barrier, thread);
    return has_ever_arrived(barrier, thread) ? uint64_t{barrier.times_arrived[thread.number]} : 0;
  };
  const auto own_end = [&](const Thread& thread) {
    return other ? counterpart_in(*thread.block, *other) : nullptr;
  };
  const auto waits_of = [&](const Thread& thread) {
    const Mbarrier* const own = own_end(thread);
    return own ? waits_in_ring(*own, thread) : 0;
  };
  const auto fills_of = [&](const Thread& thread) {
    uint64_t fills = 0;
    if (const Mbarrier* const own = own_end(thread))
      for (const Mbarrier* slot : siblings_of(*own)) fills += slot->phase;
    return fills;
  };
  const uint64_t arrived = arrivals_of(*exited.front()), waited = waits_of(*exited.front());
  std::vector<const Thread*> those, others;
  for (const Thread* thread : exited)
    if (arrivals_of(*thread) == arrived && waits_of(*thread) == waited) those.push_back(thread);
  const bool several = are_several(names_of(those));
  const std::string who = those.size() < exited.size() ? names_of(those) : several ? "they" : "it";
  const char* const verb = releases ? "released " : "arrived ";
  std::string text = ": " + who + " ";
  const uint64_t fills = fills_of(*exited.front());
  const bool leaves_one = releases && waited > arrived && fills > waited;
  if (waited)
    text += "waited " + times(waited) + " for " + slot_of_ring(*other) +
            (leaves_one ? ", which was filled " + times(fills) : "") + ", and ";
  text += verb + times(arrived);
  if (leaves_one) return text + (several ? ": do " : ": does ") + who + " make too few steps?";
  if (releases && waited > arrived) return text + ": is a release missing?";
  for (const Mbarrier::Arrival& arrival : with_bytes(barrier.arrivals, false))
    if (const uint64_t count = arrivals_of(*arrival.thread);
        count > arrived && (others.empty() || count == arrivals_of(*others.front())))
      others.push_back(arrival.thread);
  if (!others.empty()) {
    text += ", and " + names_of(others) + " " + times(arrivals_of(*others.front()));
  } else {
    others = graph.root()->waiting;
    const std::string names = names_of(others);
    const uint64_t taken = other && barrier.is_full ? waits_in_ring(barrier, *others.front()) : arrived;
    if (taken < arrived)
      return text + ", and " + names + (are_several(names) ? " have" : " has") +
             (taken ? " waited only " + times(taken) : " not waited") + " for " + slot_of_ring(barrier) +
             " before: is the index of a slot wrong?";
    text += ", and " + names + (are_several(names) ? " wait" : " waits") + " for one more";
  }
  if (waited != arrived) return text + ": is an arrival missing, or a wait too many?";
  return text + (several ? ": do " : ": does ") + who + " make too few steps, or " + names_of(others) +
         " too many?";
}

/// "; warp 4 lane 0, which arrived at other slots (gemm.cuh:68), has exited: ...": of a slot that nobody has
/// ever filled, where all who filled others have exited.
std::string filled_too_few(const WaitGraph& graph, const Mbarrier& barrier) {
  const Mbarrier* const other = other_end(barrier);
  if (!other || !barrier.is_full) return "";
  std::vector<const Thread*> those;
  std::string where;
  for (const Thread* thread : graph.threads())
    for (const Mbarrier* slot : siblings_of(barrier)) {
      if (!has_ever_arrived(*slot, *thread)) continue;
      const uint64_t steps = arrivals_in_ring(barrier, *thread);
      if (!thread->done || thread->block != barrier.block || waits_in_ring(*other, *thread) != steps)
        return "";
      if (those.empty() || those.back() != thread) those.push_back(thread);
      if (where.empty()) where = place_of_arrival(*slot, *thread);
    }
  if (those.empty()) return "";
  const std::string who = names_of(those), steps = steps_of_exited(graph, barrier, those);
  return "; " + who + ", which arrived at other slots" + where +
         (are_several(who) ? ", have exited" : ", has exited") + steps;
}

}  // namespace

Reason why_of_arrivals(const WaitGraph& graph, const Mbarrier& barrier) {
  if (const std::string held = all_slots_held(graph, barrier); !held.empty())
    return {held, /*names_mistake=*/true};
  std::vector<const Thread*> absent = absent_from(barrier);
  if (!absent.empty()) {
    const Mbarrier::Arrival* last_one = nullptr;
    for (const Mbarrier::Arrival& arrival : barrier.last_arrivals)
      if (!arrival.bytes && arrival.thread == absent.front()) last_one = &arrival;
    // Who has missed phases, or passed a wait too early, may have made a wrong number of steps itself.
    const std::string passed = passed_by(graph, barrier);
    return names_of(absent) + " arrived in the phase before (" + own_place(last_one->where) + "), and " +
           where_now(absent) +
           (passed.empty() && explain_early_wait(*graph.root()->waiting.front()->block, nullptr).empty()
                ? steps_of_exited(graph, barrier, absent)
                : passed);
  }
  std::string text;
  bool names_mistake = false;
  if (const auto arrivals = with_bytes(barrier.arrivals, false); !arrivals.empty()) {
    std::vector<const Thread*> those;
    for (const Mbarrier::Arrival& arrival : arrivals) those.push_back(arrival.thread);
    text = "only " + names_of(those) + " arrived (" + own_place(arrivals.front().where) + ")";
  } else {
    text = barrier.phase ? "nobody arrived in this phase" : "nobody has ever arrived there";
    if (barrier.times_arrived.empty()) {
      for (const std::string& cause :
           {held_by_those_who_wait(graph, barrier), arrived_at_one_slot(graph, barrier),
            arrived_in_other_blocks(graph, barrier), filled_too_few(graph, barrier)})
        if (!cause.empty()) return {text + cause, /*names_mistake=*/true};
      const std::string first_wait =
          first_wait_of_each_block(graph, barrier) + bytes_behind_first_wait(graph);
      names_mistake = !first_wait.empty();
      text += first_wait + arrivals_elsewhere(graph, barrier);
    }
  }
  std::vector<const Thread*> gone;
  for (const Thread* thread : graph.threads())
    if (thread->done && !thread->warp->live) gone.push_back(thread);
  keep_awaited(barrier, gone);
  const Reason peers = of_other_end(graph, barrier);
  // Of those who should arrive, some did: the rest may be gone.
  const bool says_gone = !gone.empty() && (peers.text.empty() || !barrier.arrivals.empty());
  if (!says_gone) {
    const Reason rest = peers.text.empty() ? elsewhere_or_count(graph, barrier)
                                           : Reason("; " + peers.text, peers.names_mistake);
    return {text + rest.text, names_mistake || rest.names_mistake};
  }
  const std::string names = names_of(gone);
  return {text + "; " + names + (are_several(names) ? " have" : " has") + " exited", names_mistake};
}

}  // namespace cpu_device
