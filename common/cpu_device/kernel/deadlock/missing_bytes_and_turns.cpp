/// @file
/// Why bytes that an mbarrier expects do not come, or why too many have; why a turn never comes, or a phase
/// was missed.
#include <algorithm>
#include <cstring>
#include <set>

#include "common/cpu_device/kernel/deadlock/cause.hpp"
#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/deadlock/wait_graph.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/loads.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {
namespace {

/// No bytes have ever come to this barrier, but to those at the same place in other blocks.
std::string bytes_to_other_blocks_alone(const WaitGraph& graph, const Mbarrier& barrier) {
  if (barrier.has_had_bytes) return "";
  std::vector<const Block*> receivers;
  for (const Block* block : graph.blocks()) {
    const Mbarrier* const other = counterpart_in(*block, barrier);
    if (other && other->has_had_bytes) receivers.push_back(block);
  }
  if (receivers.empty()) return "";
  return ": bytes have never come to " + describe(*barrier.block) + ", but only to" +
         ranges_of_blocks(receivers) + ": does this block receive any, or has their sender left it out?";
}

/// "block (2,0,0) sent 65536 bytes by ... to inbox_full of block (3,0,0), where nobody expects bytes: ...":
/// of the barriers at the same place, some lack the bytes that have come at others.
std::string bytes_in_other_blocks(const WaitGraph& graph, const Mbarrier& barrier) {
  int64_t balance = 0;
  std::string text;
  int named = 0;
  uint32_t mask = 0;
  for (const Block* block : graph.blocks()) {
    const Mbarrier* const other = counterpart_in(*block, barrier);
    if (!other) continue;
    balance += other->missing_bytes;
    if (other->missing_bytes >= 0) continue;
    if (other->expected_bytes || other->last_expected_bytes || !other->waiting.empty()) return "";
    const std::vector<Mbarrier::Arrival> came = with_bytes(other->arrivals, true);
    if (came.empty()) return "";
    std::vector<const Block*> senders;
    for (const Mbarrier::Arrival& arrival : came) {
      const Block* const sender = arrival.thread->block;
      mask = arrival.multicast_mask;
      // What a block sends that lacks bytes, too, is meant for others: they may not have come so far.
      const Mbarrier* const its_own = counterpart_in(*sender, barrier);
      if (mask ? mask >> barrier.block->ids.rank_in_cluster & 1 : its_own && its_own->missing_bytes > 0)
        return "";
      if (std::find(senders.begin(), senders.end(), sender) == senders.end()) senders.push_back(sender);
    }
    if (named++ >= kMostGroups) continue;
    const char* const what = came.front().what + std::strlen("bytes of a ");
    text +=
        (text.empty() ? "" : ", and") + ranges_of_blocks(senders) +
        (text.empty() ? print(" sent %lld bytes by ", static_cast<long long>(-other->missing_bytes)) + what +
                            " (" + own_place(came.front().where) + ") to " + name_of(barrier) + " of "
                      : " to that of ") +
        describe(*block);
  }
  if (text.empty() || balance) return "";
  return text.substr(1) + (named > kMostGroups ? ", and so on" : "") + ", where nobody expects bytes: " +
         (mask ? "does the mask name a wrong block?" : "is the rank of the receiver wrong?");
}

/// "block (1,0,0) has loaded as many bytes as are missing, at gemm.cuh:66, for itself alone, ...": by a line
/// that sends to this block, too, and to places that no load for this block fills.
std::string bytes_kept_by_other_blocks(const WaitGraph& graph, const Mbarrier& barrier) {
  const std::vector<LoadOfPhase> own = loads_of_phase(barrier, barrier.phase);
  const auto is_kept = [&](const LoadOfPhase& one) {
    const Block& block = *one.load.barrier->block;
    const bool is_alone =
        one.issuer->block == &block && !(one.load.mask & ~(1u << block.ids.rank_in_cluster));
    return is_alone &&
           std::any_of(own.begin(), own.end(),
                       [&](const auto& mine) { return mine.load.where == one.load.where; }) &&
           std::none_of(own.begin(), own.end(), [&](const auto& mine) { return overlap(mine, one); });
  };
  std::vector<const Block*> keepers;
  int64_t bytes = 0;  // that each has kept
  std::set<std::string> places;
  for (const Block* block : graph.blocks()) {
    const Mbarrier* const other = block == barrier.block ? nullptr : counterpart_in(*block, barrier);
    if (!other) continue;
    int64_t kept = 0;
    for (const LoadOfPhase& one : loads_of_phase(*other, barrier.phase)) {
      if (!is_kept(one)) continue;
      kept += one.load.bytes;
      places.insert(own_place(one.load.where));
    }
    if (!kept) continue;
    if (!keepers.empty() && kept != bytes) return "";
    bytes = kept;
    keepers.push_back(block);
  }
  const auto count = static_cast<int64_t>(keepers.size());
  const bool has_one_all = bytes == barrier.missing_bytes;
  if (!count || places.size() != 1 || (!has_one_all && bytes * count != barrier.missing_bytes)) return "";
  const bool several = count > 1;
  return ranges_of_blocks(keepers).substr(1) +
         (!several      ? " has"
          : has_one_all ? " have each"
                        : " have together") +
         " loaded as many bytes as are missing, at " + *places.begin() +
         (several ? ", for themselves alone" : ", for itself alone") +
         ", to places that no load for this block fills: should " +
         (!several      ? "it"
          : has_one_all ? "one of them"
                        : "they") +
         " multicast these to this block, too?";
}

/// "the multicasts of block (0,0,0) at gemm.cuh:66, with the mask 0b10, leave out their own block: ...": in
/// other blocks they fill what no load for this block fills.
std::string bytes_of_multicasts_without(const WaitGraph& graph, const Mbarrier& barrier) {
  const std::vector<LoadOfPhase> own = loads_of_phase(barrier, barrier.phase);
  if (own.empty() && !with_bytes(barrier.arrivals, true).empty()) return "";
  for (const Block* block : graph.blocks()) {
    const Mbarrier* const other = block == barrier.block ? nullptr : counterpart_in(*block, barrier);
    if (!other) continue;
    int64_t bytes = 0;
    std::set<std::string> places;
    std::set<uint32_t> masks;
    std::vector<const Block*> senders;
    for (const LoadOfPhase& one : loads_of_phase(*other, barrier.phase)) {
      if (!one.load.mask || one.load.mask >> barrier.block->ids.rank_in_cluster & 1) continue;
      if (std::any_of(own.begin(), own.end(), [&](const auto& mine) { return overlap(mine, one); })) continue;
      bytes += one.load.bytes;
      places.insert(own_place(one.load.where));
      masks.insert(one.load.mask);
      if (std::find(senders.begin(), senders.end(), one.issuer->block) == senders.end())
        senders.push_back(one.issuer->block);
    }
    if (bytes != barrier.missing_bytes || places.size() != 1 || masks.size() != 1) continue;
    // Other blocks may share tiles that this one has no part in.
    if (std::find(senders.begin(), senders.end(), barrier.block) == senders.end()) continue;
    return "the multicasts of" + ranges_of_blocks(senders) + " at " + *places.begin() + ", with the mask " +
           binary(*masks.begin(), *block) + ", leave out " +
           (senders.size() > 1 ? describe(*barrier.block) : std::string("their own block")) +
           ": they bring as many bytes as are missing";
  }
  return "";
}

/// As many bytes as are missing have come at another barrier that did not expect them.
std::string bytes_elsewhere(const WaitGraph& graph, const Mbarrier& barrier) {
  if (barrier.missing_bytes <= 0) return "";
  for (const auto& other : barrier.block->mbarriers)
    if (other->missing_bytes == -barrier.missing_bytes)
      return print("as many bytes as are missing, %lld, came at ",
                   static_cast<long long>(barrier.missing_bytes)) +
             name_of(*other) + ", unexpected, of" + list(with_bytes(other->arrivals, true)) +
             ": is that the wrong barrier?";
  if (const std::string sent = bytes_in_other_blocks(graph, barrier); !sent.empty()) return sent;
  if (const std::string kept = bytes_kept_by_other_blocks(graph, barrier); !kept.empty()) return kept;
  if (const std::string sent = bytes_of_multicasts_without(graph, barrier); !sent.empty()) return sent;
  return explain_unfilled(loads_of_phase(barrier, barrier.phase), barrier.missing_bytes);
}

/// In each block of a cluster somebody waits for the first bytes, and nobody has sent any.
std::string all_wait_before_they_send(const WaitGraph& graph, const Mbarrier& barrier) {
  const std::vector<const Block*> blocks = graph.blocks();
  const bool all_wait =
      blocks.size() > 1 && std::all_of(blocks.begin(), blocks.end(), [&](const Block* block) {
        const Mbarrier* const there = counterpart_in(*block, barrier);
        return there && graph.node_of(there) && WaitGraph::lacks_first_bytes(*there);
      });
  return all_wait ? "; all blocks wait likewise, and none has sent: should they send before they wait?" : "";
}

}  // namespace

std::string why_of_bytes(const WaitGraph& graph, const Mbarrier& barrier) {
  std::string text = print("%lld bytes were expected", static_cast<long long>(barrier.expected_bytes));
  std::set<std::string> places;
  for (const Mbarrier::Arrival& arrival : with_bytes(barrier.arrivals, false))
    if (const std::string place = own_place(arrival.where); places.insert(place).second)
      text += " (" + place + ")";
  if (const std::string elsewhere = bytes_elsewhere(graph, barrier); !elsewhere.empty())
    return text + "; " + elsewhere;
  const std::string arrived = list(with_bytes(barrier.arrivals, true), nullptr, /*says_bytes=*/true);
  return text +
         (arrived.empty() ? ", and none came" + bytes_to_other_blocks_alone(graph, barrier) +
                                all_wait_before_they_send(graph, barrier)
                          : ", and these came:" + arrived) +
         (barrier.missing_bytes < 0 ? explain_surplus(barrier) : "");
}

namespace {

/// Those who release a slot wait for it like those who fill it, and those of another pipeline do not come.
std::string wrong_pipeline(const WaitGraph& graph, const Mbarrier& barrier,
                           const std::vector<const Thread*>& those) {
  if (!other_end(barrier) || barrier.is_full) return "";
  const auto releases = [&](const Thread* thread) { return !place_of_arrival(barrier, *thread).empty(); };
  if (!std::all_of(those.begin(), those.end(), releases)) return "";
  for (const WaitGraph::Node& node : graph.nodes()) {
    const Thread& waits = *node.waiting.front();
    if (!is_at_mbarrier(waits)) continue;
    const Mbarrier& other = mbarrier_of(waits);
    if (!is_unused(other) || !other_end(other) || !other.is_full || is_sibling(barrier, other)) continue;
    const bool several = are_several(names_of(those));
    return names_of(those) + (several ? " release " : " releases ") + name_of(barrier) +
           place_of_arrival(barrier, *those.front()) + (several ? " themselves" : " itself") +
           "; nobody has ever arrived at " + name_of(other) + ", for which " + names_of(node.waiting) +
           (are_several(names_of(node.waiting)) ? " wait" : " waits") + ": is this the wrong pipeline?";
  }
  return "";
}

}  // namespace

Reason why_of_missed(const WaitGraph& graph, const Mbarrier& barrier, const Thread& late) {
  const uint64_t seen = seen_by(barrier, late);
  std::vector<const Thread*> those, others;
  for (const Thread* thread : graph.root()->waiting)
    if (seen_by(barrier, *thread) == seen) those.push_back(thread);
  const std::string names = names_of(those);
  if (const std::string ring = explain_restarted_ring(*late.block, &late, &late); !ring.empty())
    return {ring, /*names_mistake=*/true};
  if (const std::string early = explain_early_release(barrier); !early.empty() && !barrier.is_full)
    return early;
  for (const std::string& pipeline : {wrong_pipeline(graph, barrier, those), explain_wrong_pipeline(barrier)})
    if (!pipeline.empty()) return {pipeline, /*names_mistake=*/true};
  for (const Thread* thread : graph.threads())
    if (thread->block == late.block && seen_by(barrier, *thread) > seen) others.push_back(thread);
  if (const std::string left = explain_left_behind(barrier, those); !left.empty()) return left;
  if ((barrier.phase - seen) % 2 && !seen && barrier.phase == 1)
    return print("wrong parity, %u, or an arrival too early: ", static_cast<unsigned>(late.wait.argument)) +
           names + " did not wait for phase 0, of parity 0, which has ended with the arrivals of" +
           list(with_bytes(barrier.last_arrivals, false));
  if (!others.empty())
    return {names +
                print(" did not wait for phases %llu to %llu, ", static_cast<unsigned long long>(seen),
                      static_cast<unsigned long long>(barrier.phase - 1)) +
                names_of(others) + " did for some: is this slot, at this step, for others?",
            /*names_mistake=*/true};
  if ((barrier.phase - seen) % 2)
    return print("wrong parity, %u: ", static_cast<unsigned>(late.wait.argument)) + names +
           print(" must wait for phase %llu, of parity %u, which has ended; phase %llu comes after it",
                 static_cast<unsigned long long>(barrier.phase - 1),
                 static_cast<unsigned>((barrier.phase - 1) % 2),
                 static_cast<unsigned long long>(barrier.phase));
  return names +
         print(" came too late: phases %llu to %llu ended before", static_cast<unsigned long long>(seen),
               static_cast<unsigned long long>(barrier.phase - 1)) +
         explain_count(barrier, barrier.earlier_arrivals, barrier.last_arrivals);
}

std::string why_of_turn(const WaitGraph& graph, const Mbarrier& turn) {
  const std::string text = "nobody has ever arrived there";
  const Thread& served = *graph.served()->waiting.front();
  for (const Mbarrier* other : siblings_of(turn)) {
    std::vector<const Thread*> those;
    for (const Thread* thread : graph.threads())
      if (has_ever_arrived(*other, *thread) && !other->waits.empty() && other->waits[thread->ids.rank])
        those.push_back(thread);
    if (those.empty()) continue;
    const std::string who = names_of(those);
    return text + "; " + who + " arrived " + times(other->times_arrived[those.front()->number]) + " at " +
           name_of(*other) + place_of_arrival(*other, *those.front()) +
           (are_several(who) ? ", for which they wait themselves: should they arrive at "
                             : ", for which it waits itself: should it arrive at ") +
           name_of(turn) + "?";
  }
  const std::string who = names_of(graph.served()->waiting), late = names_of(graph.root()->waiting);
  for (const Mbarrier* other : siblings_of(turn))
    if (const auto& [thread, where, phase] = other->early_pass;
        thread && !other->phase && other != &turn && !other->waits.empty() && other->waits[served.ids.rank])
      return text + "; the wait of " + who + " for " + name_of(*other) + " (" + own_place(where) +
             ") had parity 1, which passes at once: should the first turn be that of " + late +
             "? Phase 0 of " + name_of(mbarrier_of(served)) + ", for which nobody has waited, " +
             (are_several(who) ? "they have" : "it has") + " left to others";
  return text;
}

std::string why_of_new_slot(const WaitGraph& graph, const Mbarrier& barrier) {
  const unsigned parity = graph.root()->waiting.front()->wait.argument;
  const Mbarrier* const full = other_end(barrier);
  const std::string readers = names_of(graph.node_of(full)->waiting);
  return print("the slot is new, and empty: the first wait for it must have parity %u, and has %u; ",
               1 - parity, parity) +
         readers + (are_several(readers) ? " wait for " : " waits for ") + name_of(*full);
}

}  // namespace cpu_device
