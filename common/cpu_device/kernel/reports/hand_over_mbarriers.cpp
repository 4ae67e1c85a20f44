/// @file
/// Who should have arrived at an mbarrier, or waited for it, before a slot was read or filled again.
#include "common/cpu_device/kernel/reports/hand_over.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "common/cpu_device/kernel/deadlock/mbarriers.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

std::optional<Thread::Seen> seen_in(const Thread& thread, uint32_t epoch) {
  if (!epoch) return thread.last_seen;
  for (auto seen = thread.seen_before.rbegin(); seen != thread.seen_before.rend(); ++seen)
    if (seen->epoch <= epoch) return *seen;
  if (thread.seen_before.size() < Thread::kSeenKept) return Thread::Seen{};
  return std::nullopt;
}

std::string explain_first_parity(const Thread::Seen& seen) {
  if (!seen.repeats.line) return " with parity 1, which passes before the first phase has ended";
  const std::string now = own_place(seen.where), before = own_place(seen.repeats);
  return " with parity 1 (" + now + "), as it had the time before" +
         (now == before ? "" : " (" + before + ")") +
         ": the parity has not flipped between the two, and parity 1 passes before the first phase has ended";
}

std::string explain_same_parity(const Thread::Seen& seen) {
  if (!seen.phase || !seen.repeats.line) return "";
  return print("; its wait there before (%s) was for the same phase: the parity, %u, has not flipped between",
               own_place(seen.repeats).c_str(), static_cast<unsigned>((seen.phase - 1) % 2));
}

std::string explain_last_wait(const Thread& thread, uint32_t epoch) {
  const Thread::Seen seen = seen_in(thread, epoch).value_or(Thread::Seen{});
  if (!seen.barrier) return "";
  std::string text = "the reader waited last for " + name_of(*seen.barrier);
  if (seen.phase == 0) return text + explain_first_parity(seen);
  text += print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1));
  if (seen.barrier->phase != seen.phase || seen.barrier->last_waits.empty()) return text;
  const Mbarrier::Wait& wait = seen.barrier->last_waits[thread.ids.rank];
  const auto& arrivals = seen.barrier->last_arrivals;
  const auto store = std::find_if(arrivals.begin(), arrivals.end(),
                                  [](const auto& arrival) { return arrival.needs_cluster_scope; });
  if (wait.of_cluster || store == arrivals.end())
    return text + " (" + own_place(wait.where) + ")" + explain_same_parity(seen);
  return text + ": the " + wait.what + " at " + to_string(wait.where) +
         " has the scope of the block, and for what another block stores (" + store->what + " at " +
         to_string(store->where) + ") it must be the cluster";
}

std::string who_and_where(const Thread& thread, const Mbarrier& barrier, const Mbarrier::Arrival& arrival) {
  return print("warp %u lane %u arrives at ", thread.warp->index, thread.lane) + name_of(barrier) + " (" +
         own_place(arrival.where) + ")";
}

bool is_of_warpgroup(const Thread& one, const Thread& other) {
  return one.block == other.block && one.ids.rank / kWarpgroupThreads == other.ids.rank / kWarpgroupThreads;
}

const Mbarrier* empty_end_of(const Block& block, const std::string& note_of_writer) {
  for (const auto& full : block.mbarriers)
    if (" for " + name_of(*full) == note_of_writer) return other_end(*full);
  return nullptr;
}

std::string explain_lanes_without(const Thread& thread, const char* does, const Mbarrier& barrier,
                                  uint64_t phase, const std::vector<Mbarrier::Arrival>& kept) {
  const std::vector<Mbarrier::Arrival> arrivals = with_bytes(kept, false);
  const Mbarrier::Arrival* first = nullptr;
  std::set<const Thread*> lanes;
  for (const Mbarrier::Arrival& one : arrivals) {
    if (one.thread == &thread) return "";
    if (!first && is_of_warpgroup(*one.thread, thread)) first = &one;
    if (first && one.thread->warp == first->thread->warp && one.where == first->where)
      lanes.insert(one.thread);
  }
  if (lanes.size() < 2) return "";
  return print("phase %llu of ", static_cast<unsigned long long>(phase - 1)) + name_of(barrier) +
         " ended with the arrivals of" + list(arrivals) +
         print(", as its count of %u says (", barrier.expected) + place_of_initialisation(barrier) + "); " +
         names_of({&thread}) + ", which " + does +
         ", is not among them: should it arrive, too, and the count include it?";
}

std::string explain_weak_arrival(const WaitedFor& hand_over, const Thread& first, const Thread& second) {
  const Mbarrier::Arrival& arrival = *hand_over.arrival;
  if (!arrival.remote) return "";
  const std::string came = "between them: " + std::string(arrival.what) + " at " +
                           name_of(*hand_over.barrier) + ", at " + to_string(arrival.where);
  if (*arrival.remote == ArrivalOrder::relaxed)
    return came + ": it is relaxed, and says nothing of loads and stores before it";
  const Mbarrier::Wait& wait = *hand_over.wait;
  if (wait.of_cluster || first.block == second.block) return "";
  return came + ", of another block, and the " + wait.what + " at " + to_string(wait.where) +
         ": its scope is the block, and for an arrival of another block it must be the cluster";
}

static bool has_warp_arrived(const Mbarrier& barrier, const Warp& warp) {
  return std::any_of(std::begin(warp.lanes), std::end(warp.lanes),
                     [&](const Thread* lane) { return lane && has_ever_arrived(barrier, *lane); });
}

std::string explain_no_wait(const Thread& writer, const Thread& reader, uint32_t epoch_of_reader) {
  const std::optional<Thread::Seen> before =
      epoch_of_reader ? seen_in(reader, epoch_of_reader) : std::nullopt;
  const Mbarrier* const last = reader.last_seen.barrier;
  if (before && !before->barrier && last && has_warp_arrived(*last, *writer.warp))
    return "the reader had waited for no mbarrier by then, and waits for " + name_of(*last) + " (" +
           own_place(reader.last_seen.where) + ") after that: should the wait come first?";
  for (const auto& barrier : reader.block->mbarriers) {
    if (last && (!barrier->phases_seen.empty() || !barrier->waiting.empty())) continue;
    for (const auto* arrivals : {&barrier->earlier_arrivals, &barrier->last_arrivals, &barrier->arrivals})
      for (const Mbarrier::Arrival& arrival : *arrivals)
        if (!arrival.bytes && arrival.thread->warp == writer.warp && std::strcmp(barrier->end, "empty") != 0)
          return (last ? "the reader waited last for " + name_of(*last)
                       : std::string("the reader has waited for no mbarrier")) +
                 ", and " + who_and_where(*arrival.thread, *barrier, arrival) +
                 (last ? ", for which no thread has waited" : "");
  }
  return "";
}

std::string explain_writer_ahead(const Thread& writer, uint32_t epoch_of_writer, const Thread& reader,
                                 uint32_t epoch_of_reader) {
  const std::optional<Thread::Seen> seen_by_reader = seen_in(reader, epoch_of_reader);
  if (!seen_by_reader) return "";
  const Mbarrier* const full = seen_by_reader->barrier;
  const Mbarrier* const empty = full ? other_end(*full) : nullptr;
  if (!empty || std::strcmp(full->end, "full") != 0 || writer.block != reader.block) return "";
  // Of another pipeline than the one that the writer fills.
  const Block& block = *writer.block;
  const size_t first = writer.ids.rank / kWarpgroupThreads * kWarpgroupWarps;
  const auto fills = [&](const Warp& warp) { return has_warp_arrived(*full, warp); };
  const auto end = std::min(first + kWarpgroupWarps, block.warps.size());
  if (std::none_of(block.warps.begin() + first, block.warps.begin() + end, fills)) return "";
  uint64_t seen = 0;
  for (size_t i = 0; i < empty->phases_seen.size(); ++i)
    if (i / kWarpgroupThreads == writer.ids.rank / kWarpgroupThreads)
      seen = std::max(seen, empty->phases_seen[i]);
  uint64_t arrivals = 0;  // of its warp: it has done its part in so many phases
  for (const Thread* const lane : writer.warp->lanes)
    if (lane && has_ever_arrived(*full, *lane))
      arrivals = std::max<uint64_t>(arrivals, full->times_arrived[lane->number]);
  // What the reader reads after the phase, the warp has not written before its arrival.
  const bool reads_after = seen_by_reader->phase >= full->phase && arrivals >= full->phase;
  const bool is_ahead = full->phase > seen + (reads_after ? 0 : 1);
  if (!is_ahead) return "";
  const Thread::Seen last = seen_in(writer, epoch_of_writer).value_or(Thread::Seen{});
  const bool is_of_another_slot = last.barrier && last.barrier != empty && is_sibling(*empty, *last.barrier);
  return describe(writer) + " writes again without waiting for " + name_of(*empty) + ": " +
         (full->phase == 1 ? "1 phase of " + name_of(*full) + " has"
                           : print("%llu phases of ", static_cast<unsigned long long>(full->phase)) +
                                 name_of(*full) + " have") +
         print(" ended, and it has waited for %llu of ", static_cast<unsigned long long>(seen)) +
         name_of(*empty) +
         (is_of_another_slot
              ? "; its last wait is for " + name_of(*last.barrier) + " (" + own_place(last.where) + ")"
              : "");
}

const std::vector<Mbarrier::Arrival>* arrivals_of(const Thread::Seen& seen) {
  if (seen.barrier->phase == seen.phase) return &seen.barrier->last_arrivals;
  if (seen.barrier->phase == seen.phase + 1) return &seen.barrier->earlier_arrivals;
  return nullptr;
}

std::string with_arrivals_of(const Thread::Seen& seen) {
  const auto* const arrivals = arrivals_of(seen);
  if (!arrivals) return "";
  const auto threads = with_bytes(*arrivals, false);
  return " with the arrivals of" + list(threads.empty() ? *arrivals : threads);
}

namespace {

/// The thread has released a slot more often than a thread of its warpgroup has waited for it; else nothing.
std::string explain_unread_release(const Mbarrier& empty, const Thread& thread) {
  const Mbarrier& full_there = *other_end(empty);
  const auto& all = thread.block->mbarriers;
  const auto full =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->offset == full_there.offset; });
  if (full == all.end() || !has_ever_arrived(empty, thread)) return "";
  uint64_t waits = 0;
  for (const Warp& warp : thread.block->warps)
    for (const Thread* const lane : warp.lanes)
      if (lane && is_of_warpgroup(*lane, thread) && !(*full)->waits.empty())
        waits = std::max(waits, (*full)->waits[lane->ids.rank]);
  if (waits >= empty.times_arrived[thread.number]) return "";
  return "; " + names_of({&thread}) + " arrives there, and no thread of its warpgroup has waited for " +
         name_of(**full) + (waits ? " as often" : "") +
         ": should it release a slot that it has not waited for?";
}

/// ", called at gemm.cuh:121": of a place in a helper that lies in another file than its call; else nothing.
std::string called_at(Location where) {
  const OwnLine own = own_line(where);
  const auto file_of = [](const std::string& place) { return place.substr(0, place.find(':')); };
  const HelperCall call = call_of_helper(where);
  const std::string caller = call.file.substr(call.file.rfind('/') + 1);
  const bool is_helper =
      call.line && file_of(to_string(where)) == file_of(own.place) && caller != file_of(own.place);
  return is_helper ? ", called at " + caller + ":" + std::to_string(call.line) : "";
}

/// Those who arrived are of blocks to which the multicasts that fill the slot do not go: which; else nothing.
std::string explain_strangers(const Mbarrier& empty, const std::vector<Mbarrier::Arrival>& arrivals) {
  uint32_t receivers = 0, strangers = 0;
  for (const Mbarrier* end : {&empty, other_end(empty)})
    for (const auto* all : {&end->earlier_arrivals, &end->last_arrivals, &end->arrivals})
      for (const Mbarrier::Arrival& one : *all) receivers |= one.multicast_mask;
  if (!receivers) return "";
  Cluster& cluster = arrivals.front().thread->cluster;
  for (const Mbarrier::Arrival& one : arrivals) strangers |= 1u << one.thread->block->ids.rank_in_cluster;
  strangers &= ~receivers;
  if (!strangers) return "";
  return "; the multicasts that fill the slot do not go to " + names_of_blocks(cluster, strangers) +
         ": should " + (strangers & (strangers - 1) ? "these release" : "it release") +
         " the slot of another block?";
}

/// Two warpgroups have passed the wait for one phase of the full slot, and those who ended the phase of the
/// empty one are of one of them: the slot may be meant for these alone. Else nothing.
std::string explain_two_readers(const Thread::Seen& writers, const Thread& reader,
                                const std::vector<Mbarrier::Arrival>& arrivals) {
  const Mbarrier& full = *other_end(*writers.barrier);
  const uint64_t phase = writers.phase;  // as many have been filled as were emptied
  const auto has_waited = [&](const Thread& thread) {
    return thread.block == full.block && !full.waits.empty() && full.waits[thread.ids.rank] &&
           full.phases_seen[thread.ids.rank] >= phase;
  };
  std::vector<const Thread*> own, others;
  for (const Warp& warp : reader.block->warps)
    for (const Thread* const lane : warp.lanes) {
      if (!lane || !has_waited(*lane)) continue;
      const bool arrives = std::any_of(arrivals.begin(), arrivals.end(),
                                       [&](const auto& one) { return is_of_warpgroup(*one.thread, *lane); });
      if (is_of_warpgroup(*lane, reader))
        own.push_back(lane);
      else if (arrives)
        others.push_back(lane);
    }
  if (own.empty() || others.empty()) return "";
  const std::string who = names_of(own), those = names_of(others);
  const Mbarrier::Wait* const wait =
      full.last_waits.empty() ? nullptr : &full.last_waits[own.front()->ids.rank];
  return "; " + who + (are_several(who) ? " have" : " has") + " waited for " + name_of(full) +
         (wait && wait->where.line ? " (" + own_place(wait->where) + ")" : "") + ", as " + those +
         (are_several(those) ? " have" : " has") + ": is this slot for " + those +
         " alone, or must the count include both?";
}

}  // namespace

std::string explain_phases_ahead(const Mbarrier& barrier) {
  const auto& seen = barrier.phases_seen;
  const uint64_t waited_for = seen.empty() ? 0 : *std::max_element(seen.begin(), seen.end());
  if (barrier.phase < waited_for + 2 || barrier.last_arrivals.empty()) return "";
  const Mbarrier::Arrival& last = barrier.last_arrivals.back();
  for (const auto* arrivals : {&barrier.earlier_arrivals, &barrier.last_arrivals})
    for (const Mbarrier::Arrival& one : *arrivals)
      if (!(one.where == last.where) || !is_of_warpgroup(*one.thread, *last.thread)) return "";
  return explain_count(barrier, barrier.earlier_arrivals, barrier.last_arrivals);
}

std::string explain_unneeded(const Thread::Seen& seen, const Thread& reader, uint32_t mask) {
  const Unobserved unobserved;
  const Mbarrier& barrier = *seen.barrier;
  const auto* kept = arrivals_of(seen);
  // At a barrier that is no end of a slot they may say anything, unless the reader comes there, too.
  const bool is_of_ring = other_end(barrier);
  if (!kept || (is_of_ring ? barrier.is_full : !has_warp_arrived(barrier, *reader.warp))) return "";
  const std::vector<Mbarrier::Arrival> arrivals = with_bytes(*kept, false);
  bool block_came = false, receiver_came = false;
  for (const Mbarrier::Arrival& one : arrivals) {
    if (is_of_warpgroup(*one.thread, reader)) return "";
    block_came |= one.thread->block == reader.block;
    receiver_came |= mask >> one.thread->block->ids.rank_in_cluster & 1;
  }
  if (arrivals.empty()) return "";
  std::string why;
  for (const Mbarrier::Arrival& one : arrivals)
    if (is_of_ring && why.empty()) why = explain_unread_release(barrier, *one.thread);
  if (is_of_ring && why.empty()) why = explain_strangers(barrier, arrivals);
  if (is_of_ring && why.empty()) why = explain_two_readers(seen, reader, arrivals);
  if (why.empty() && mask && !receiver_came)
    why =
        "; the multicast goes to none of these blocks: does its mask name wrong ones, or should these "
        "release a slot of another block?";
  const unsigned warp = reader.warp->index / kWarpgroupWarps * kWarpgroupWarps;
  return " without an arrival of " +
         (block_came ? print("warps %u-%u, which read", warp, warp + kWarpgroupWarps - 1)
                     : describe(*reader.block) + ", which reads") +
         ": its count is " + print("%u (", barrier.expected) + place_of_initialisation(barrier) +
         "), made up by" + list(arrivals) + called_at(arrivals.front().where) + why;
}

std::string explain_unheard(const Thread& first, const Thread& second,
                            const RaceChecker::Unordered& accesses) {
  if (accesses.first_writes || first.block == second.block) return "";
  for (const bool of_its_warp : {true, false})  // which says more than another warp of its warpgroup
    for (const auto& barrier : second.block->mbarriers) {
      if (!barrier->phases_seen.empty() || !barrier->waiting.empty()) continue;
      for (const auto* arrivals : {&barrier->earlier_arrivals, &barrier->last_arrivals, &barrier->arrivals})
        for (const Mbarrier::Arrival& one : *arrivals) {
          const bool fits =
              of_its_warp ? one.thread->warp == first.warp : is_of_warpgroup(*one.thread, first);
          if (!one.bytes && fits)
            return describe(*first.block) +
                   print(" warp %u, %s, arrives at ", one.thread->warp->index,
                         of_its_warp ? "which reads" : "of the warpgroup that reads") +
                   name_of(*barrier) + " of " + describe(*second.block) + " (" + own_place(one.where) +
                   "), for which no thread has waited";
        }
    }
  return "";
}

namespace {

bool are_of_two_slots(const Mbarrier& empty, const Mbarrier& full) {
  return other_end(empty) && other_end(full) && !empty.is_full && full.is_full &&
         empty.initialised_at == full.initialised_at && empty.block == full.block && empty.slot != full.slot;
}

}  // namespace

std::string explain_other_slot(const Thread::Seen& writers, const std::optional<Thread::Seen>& readers) {
  if (!readers || !readers->barrier || !are_of_two_slots(*writers.barrier, *readers->barrier)) return "";
  return "; the reader, for " + name_of(*readers->barrier) + ": these are two slots";
}

std::string explain_two_slots(const Thread& writer, uint32_t epoch_of_writer, const Thread& reader,
                              uint32_t epoch_of_reader) {
  const Thread::Seen writers = seen_in(writer, epoch_of_writer).value_or(Thread::Seen{}),
                     readers = seen_in(reader, epoch_of_reader).value_or(Thread::Seen{});
  if (!writers.barrier || !readers.barrier || !are_of_two_slots(*writers.barrier, *readers.barrier))
    return "";
  const Mbarrier &full = *other_end(*writers.barrier), &empty = *other_end(*readers.barrier);
  const auto& seen = reader.seen_before;
  const auto is_of_writers_slot = [&](const Thread::Seen& one) {
    return one.barrier == &full && (!epoch_of_reader || one.epoch <= epoch_of_reader);
  };
  if (seen.size() == Thread::kSeenKept || std::any_of(seen.begin(), seen.end(), is_of_writers_slot))
    return "";
  const uint64_t acquired = empty.waits.empty() ? 0 : empty.waits[writer.ids.rank];
  uint64_t filled = 0;  // by its warp, of which one lane may arrive for all
  for (const Thread* const lane : writer.warp->lanes)
    if (lane && has_ever_arrived(*readers.barrier, *lane))
      filled = std::max<uint64_t>(filled, readers.barrier->times_arrived[lane->number]);
  if (acquired > filled) return "";
  const auto behind = [](const Thread& thread, const char* does, const Thread::Seen& seen) {
    return describe(thread) + " " + does + " behind its wait for " + name_of(*seen.barrier) + " (" +
           own_place(seen.where) + ")";
  };
  return behind(writer, "writes", writers) + ", and " + behind(reader, "reads", readers) +
         ": these are two slots";
}

std::string explain_loader_ahead(const Thread& loader, const Mbarrier& full, uint64_t seen_by_reader,
                                 bool are_writes) {
  const Mbarrier* const empty = other_end(full);
  if (!empty || !full.is_full || !full.phase || seen_by_reader < full.phase || loader.block != full.block)
    return "";
  uint64_t seen = 0, waits = 0;  // of its warp, of which one lane may wait for all
  for (const Thread* const lane : loader.warp->lanes) {
    if (!lane || empty->waits.empty()) continue;
    seen = std::max(seen, empty->phases_seen[lane->ids.rank]);
    waits = std::max(waits, empty->waits[lane->ids.rank]);
  }
  if (seen >= full.phase) return "";
  return describe(loader) + " fills the slot again, and has " +
         (waits ? "not waited for phase " + std::to_string(full.phase - 1) + " of "
                : std::string("never waited for ")) +
         name_of(*empty) +
         (are_writes ? ""
                     : "; the reader has waited for phase " + std::to_string(full.phase - 1) + " of " +
                           name_of(full) + ", and reads what that has brought");
}

std::string explain_copy_not_waited_for(const Thread& reader, uint32_t epoch, const Thread& writer,
                                        const RaceChecker::Unordered& accesses) {
  const std::string& note = accesses.note_of_writer;
  const Mbarrier* completes_on = nullptr;
  for (const auto& barrier : reader.block->mbarriers)
    if (" for " + name_of(*barrier) == note) completes_on = barrier.get();
  if (!completes_on) return "";
  if (const std::string slot = explain_slot_of_load(writer, accesses.offset, *completes_on); !slot.empty())
    return slot;
  const uint64_t seen = completes_on->phases_seen.empty() ? 0 : completes_on->phases_seen[reader.ids.rank];
  if (const std::string ahead = explain_loader_ahead(writer, *completes_on, seen); !ahead.empty()) {
    accesses.retell("overwritten while it may still be read: no barrier or wait orders the two");
    return ahead;
  }
  for (const auto& operation : reader.cluster.in_flight()) {
    const auto* copy = dynamic_cast<const CountedCopy*>(operation.get());
    if (copy && copy->barrier == completes_on && copy->phase < seen)
      return print("phase %llu of ", static_cast<unsigned long long>(copy->phase)) + name_of(*completes_on) +
             print(
                 ", which the reader has waited for, has ended without all bytes: %lld were expected, too "
                 "few",
                 static_cast<long long>(completes_on->last_expected_bytes));
  }
  const std::optional<Thread::Seen> before = seen_in(reader, epoch);
  if (!before || before->barrier == completes_on) return "";
  if (const std::string last = explain_last_wait(reader, epoch); !last.empty())
    return "the reader must wait for " + name_of(*completes_on) + "; " + last +
           (is_sibling(*completes_on, *before->barrier) ? ": does it read another slot than it waits for?"
                                                        : "");
  return "the reader must wait for " + name_of(*completes_on) + "; it has waited for no mbarrier";
}

}  // namespace cpu_device
