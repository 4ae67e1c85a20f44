/// @file
/// Why two accesses have no order: what should have handed over from the one thread to the other.
#include "common/cpu_device/kernel/reports/hand_over.hpp"

#include <algorithm>
#include <optional>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/loads.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {

namespace {

/// One of the two waits in a __syncthreads to which the other has not come: who does, and who has not; else
/// nothing.
std::string explain_absence(const Thread& first, const Thread& second) {
  const NamedBarrier& barrier = first.block->barriers[0];
  const auto waits = [&](const Thread& thread) {
    return std::find(barrier.waiting.begin(), barrier.waiting.end(), &thread) != barrier.waiting.end();
  };
  if (waits(first) == waits(second)) return "";
  const std::string present = names_of({barrier.waiting.begin(), barrier.waiting.end()});
  const std::string others = names_of_lanes(*first.block, [&](const Thread& one) { return !waits(one); });
  return ": " + present + (are_several(present) ? " wait" : " waits") + " there (" +
         own_place(barrier.where) + "), and " + others + (are_several(others) ? " have" : " has") +
         " not come there yet";
}

/// An operation was issued before both met in a __syncthreads, and no wait had covered it by then.
std::string explain_uncovered(const Thread& issuer, const std::string& what, uint32_t issued_in,
                              const Thread::Order& barrier, bool copy_was_first, const std::string& where,
                              const RaceChecker::Unordered& accesses) {
  const bool is_copy = what == "cp.async";
  std::string late = is_copy ? explain_late_commit(issuer, issued_in, accesses.offset) : "";
  if (late.empty() && is_copy) late = explain_open_copies(issuer);
  if (!late.empty()) return late;
  const bool is_read_early = copy_was_first || (accesses.reads_early && accesses.first_writes);
  const std::string other = is_copy && is_read_early ? accesses.landed_and_unread() : "";
  if (!other.empty())
    return "no wait has covered this cp.async, and " + other +
           ", whose copies have landed, is read by nobody: should the " +
           (accesses.first_writes ? accesses.second_what : accesses.first_what) + " read another slot?";
  return where + " comes after the " + what + " is issued, but " +
         (what == "wgmma"
              ? explain_wgmma_wait(issuer, issued_in, barrier)
              : "no wait had covered that by then" + (is_copy ? explain_copy_wait(issuer, barrier) : ""));
}

/// Both threads have met in a __syncthreads, or one of them has.
std::string explain_block_barrier(const Thread& first, const Thread& second,
                                  const RaceChecker::Unordered& accesses) {
  if (first.block != second.block || !accesses.first_epoch) return "";
  if (&first == &second && (accesses.first_what == "cp.async" || accesses.second_what == "cp.async") &&
      accesses.first_what != "wgmma" && accesses.second_what != "wgmma")
    return explain_own_copy(first, accesses);
  // A thread that has gone on may wait at a __syncthreads to which the other has not come yet.
  size_t met = std::min(first.block_barriers.size(), second.block_barriers.size());
  // The second may have been issued first, and have gone on.
  const bool second_was_first = !accesses.reads_early && accesses.first_writes &&
                                accesses.second_is_operation && accesses.second_epoch && met &&
                                second.block_barriers[met - 1].epoch > accesses.second_epoch;
  // A copy that was issued before the read, and has not landed.
  const bool copy_was_first =
      accesses.reads_early && !accesses.first_writes && accesses.second_is_operation && accesses.second_epoch;
  if (copy_was_first)
    while (met && first.block_barriers[met - 1].epoch > accesses.first_epoch) --met;
  if (accesses.second_is_operation && accesses.second_epoch && !second_was_first && !copy_was_first)
    while (met && second.block_barriers[met - 1].epoch >= accesses.second_epoch) --met;
  const bool copy_was_before =
      copy_was_first && met && second.block_barriers[met - 1].epoch > accesses.second_epoch;
  const bool met_since =
      second_was_first || copy_was_before ||
      (met && accesses.first_is_operation && first.block_barriers[met - 1].epoch >= accesses.first_epoch);
  // Where threads wait for mbarriers, these explain more, unless the threads have met since.
  if ((first.last_seen.barrier || second.last_seen.barrier) && !met_since) return "";
  const bool are_stores =
      accesses.are_writes && !accesses.first_is_operation && !accesses.second_is_operation;
  if (!met)
    return "the two threads have not met in a __syncthreads" + explain_absence(first, second) +
           (are_stores && accesses.is_one_line ? "; or should each store elements of its own?" : "");
  const std::string where =
      "the last __syncthreads of both (" + own_place(second.block_barriers[met - 1].where) + ")";
  if (met_since) {
    const bool of_second = second_was_first || copy_was_before;
    const Thread& issuer = of_second ? second : first;
    const uint32_t issued_in = of_second ? accesses.second_epoch : accesses.first_epoch;
    const std::string& what = of_second ? accesses.second_what : accesses.first_what;
    return explain_uncovered(issuer, what, issued_in, issuer.block_barriers[met - 1], copy_was_first, where,
                             accesses);
  }
  // A copy that is issued before the read, and lands where the reader still wants what was there.
  if (!accesses.reads_early && !accesses.first_writes && accesses.second_is_operation &&
      accesses.second_epoch) {
    const size_t both = std::min(first.block_barriers.size(), second.block_barriers.size());
    size_t between = met;
    while (between < both && first.block_barriers[between].epoch < accesses.first_epoch) ++between;
    if (between > met)
      return "the " + accesses.second_what + " is issued before the __syncthreads of both (" +
             own_place(second.block_barriers[met].where) + "), and the " + accesses.first_what +
             " that still wants what was there comes after it: should it fill another slot?";
  }
  if (first.warp == second.warp && !accesses.first_is_operation && !accesses.second_is_operation)
    return where +
           print(
               " comes before both; these are lanes of warp %u, which do not run in step: a __syncwarp, at "
               "least, must come between",
               first.warp->index) +
           (accesses.reads_of_other_warps()
                ? ", or a __syncthreads if other warps go on writing what the line reads"
                : "");
  const bool is_copy = accesses.first_what == "cp.async" || accesses.second_what == "cp.async";
  return where + " comes before both: another must come between" +
         (is_copy && !accesses.are_writes ? ", or should the cp.async fill another slot?" : "");
}

/// The last load of a thread that brings the byte to the block; null if none does.
const Thread::CountedLoad* load_over(const Thread& sender, const Block& target, size_t offset) {
  for (auto load = sender.last_loads.rbegin(); load != sender.last_loads.rend(); ++load)
    if (load->barrier->block == &target && load->offset <= offset && offset < load->offset + load->bytes)
      return &*load;
  return nullptr;
}

/// The mask of the multicast that writes the byte in `target`; 0 where another copy does.
uint32_t mask_of(const Thread& writer, const Block& target, const RaceChecker::Unordered& accesses) {
  if (accesses.first_writes || accesses.second_what != "TMA multicast") return 0;
  const Thread::CountedLoad* const load = load_over(writer, target, accesses.offset);
  return load ? load->mask : 0;
}

std::string explain_mask(const Block& sender, uint32_t mask) {
  if (!mask) return "";
  const bool is_own = mask >> sender.ids.rank_in_cluster & 1;
  return ", with the mask " + binary(mask, sender) + (is_own ? "" : ", which leaves out its own block");
}

/// "smem.b[0].panels[1][32][0] to [63][63]": of the array that holds a byte the first place to which nobody
/// has brought anything; nothing if there is none.
std::string not_brought(const Cluster& cluster, SharedLayout& layout, const RaceChecker& races,
                        const Block& target, size_t offset) {
  constexpr size_t kStep = 16;
  const auto [begin, array_end] = array_around(layout, target.shared.bytes(), offset);
  const auto is_brought = [&](size_t at) {
    if (races.is_written(target.ids.rank_in_cluster, at)) return true;
    for (const auto& block : const_cast<Cluster&>(cluster).blocks())
      for (const Warp& warp : block->warps)
        for (const Thread* lane : warp.lanes)
          if (lane && load_over(*lane, target, at)) return true;
    return false;
  };
  size_t first = begin;
  while (first < array_end && is_brought(first)) first += kStep;
  if (first >= array_end) return "";
  size_t end = first;
  while (end < array_end && !is_brought(end)) end += kStep;
  return layout.name_of(first) + " to " +
         layout.name_of(end - 1).substr(without_row(layout.name_of(first)).size());
}

/// Two blocks send to the same place of a block, and another part of the array gets nothing: the place lacks
/// what tells the one block from the other.
std::string explain_loads_to_one_place(const Thread& first, const Thread& second,
                                       const RaceChecker::Unordered& accesses) {
  if (accesses.first_what != "TMA multicast" || accesses.second_what != accesses.first_what ||
      first.block == second.block)
    return "";
  Cluster& cluster = first.cluster;
  const Block& target = *cluster.blocks()[accesses.block];
  const Thread::CountedLoad *const one = load_over(first, target, accesses.offset), *const other = load_over(
                                                                                        second, target,
                                                                                        accesses.offset);
  if (!one || !other || one->barrier != other->barrier || one->offset != other->offset) return "";
  const Unobserved unobserved;
  const std::string left = not_brought(cluster, cluster.layout(), *cluster.races(), target, one->offset);
  if (left.empty()) {
    const Mbarrier& barrier = *other->barrier;
    if (explain_same_place(loads_of_phase(barrier, barrier.phase, &second)).empty()) return "";
    return print("both bring %u bytes to the same place, with the masks ", one->bytes) +
           binary(one->mask, *first.block) + " and " + binary(other->mask, *second.block) +
           ": does a mask name a wrong block, or should each block load its own?";
  }
  return print("both bring %u bytes to the same place of ", one->bytes) + describe(target) +
         ", and nobody brings anything to " + left +
         ": does the place in shared memory lack the offset of the block's own part?";
}

/// Does the barrier speak of slots that loads fill, while a thread writes what a TMA store reads? Such a
/// place is no slot of that ring, and no arrival there hands it over.
bool speaks_of_other_places(const Mbarrier& barrier, const RaceChecker::Unordered& accesses) {
  const Mbarrier* const other = other_end(barrier);
  if (!other || !accesses.note_of_writer.empty()) return false;
  if ((accesses.first_writes ? accesses.second_what : accesses.first_what) != "TMA store") return false;
  const Mbarrier& full = barrier.is_full ? barrier : *other;
  return full.expected_bytes || full.last_expected_bytes;
}

/// One thread issues two loads to one place, and arrives nowhere between: both are of one slot.
bool are_loads_of_one_slot(const Thread& thread, const RaceChecker::Unordered& accesses) {
  if (accesses.first_what.rfind("TMA ", 0) != 0 || accesses.second_what.rfind("TMA ", 0) != 0) return false;
  if (!accesses.first_epoch || !accesses.second_epoch) return false;
  const auto [from, to] = std::minmax(accesses.first_epoch, accesses.second_epoch);
  for (const auto& block : thread.cluster.blocks())
    for (const auto& barrier : block->mbarriers)
      for (const auto* arrivals : {&barrier->earlier_arrivals, &barrier->last_arrivals, &barrier->arrivals})
        for (const Mbarrier::Arrival& one : with_bytes(*arrivals, false))
          if (one.thread == &thread && from <= one.epoch && one.epoch < to) return false;
  return true;
}

/// Of the thread's proxy fences, of which the last comes behind an access: the last one before that, and the
/// first one behind it, which comes behind an arrival, too. In a loop both may be one line.
std::string explain_late_fence(const Thread& thread, uint32_t epoch, const Mbarrier::Arrival& arrival,
                               const std::string& comes_before) {
  const auto& fences = thread.proxy_fences;
  const Thread::Order *before = nullptr, *after = nullptr;
  for (const Thread::Order& one : fences)
    if (one.epoch < epoch)
      before = &one;
    else if (!after)
      after = &one;
  const bool is_behind = after && arrival.thread == &thread && after->epoch >= arrival.epoch;
  const std::string late = is_behind ? "comes after that arrival" : "comes too late";
  if (!before && fences.size() == Thread::kFencesKept)  // the first ones are not kept
    return "; its last one (" + own_place(fences.back().where) + ") comes too late";
  if (!before) return "; its first one (" + own_place(after->where) + ") " + late;
  const std::string one = own_place(before->where), other = own_place(after->where);
  return "; the one at " + one + " " + comes_before +
         (one == other ? ", and again only after that arrival" : ", and the next, at " + other + ", " + late);
}

/// Two accesses without an order, and what should have handed over from the first thread to the second: a
/// chain of questions, of which the first that has an answer ends it.
class HandOver {
 public:
  HandOver(const Thread& first, const Thread& second, const RaceChecker::Unordered& accesses);
  /// Half a sentence, or nothing.
  std::string explain() const;

 private:
  using Question = std::string (HandOver::*)() const;

  // What is wrong whatever order was meant.
  std::string does_wgmma_read_another_slot() const;
  std::string do_writes_share_a_place() const;
  std::string is_a_barrier_initialised_too_late() const;
  std::string has_a_ring_begun_again() const;
  std::string is_a_fence_missing() const;
  // What an operation in flight, which reads or writes for its thread, lacks.
  std::string is_a_store_waited_for_too_late() const;
  std::string does_an_arrival_hand_over_too_early() const;
  std::string does_the_second_arrive_in_flight() const;
  std::string does_a_store_read_too_early() const;
  std::string do_they_wait_for_two_slots() const;
  std::string is_a_store_overtaken() const;
  std::string is_a_copy_read_too_early() const;
  // Who should have arrived, or waited.
  std::string does_the_writer_write_again() const;
  std::string do_others_arrive_for_the_first() const;
  std::string is_an_arrival_relaxed() const;
  std::string do_lanes_lack_a_syncwarp() const;
  std::string do_blocks_lack_a_cluster_sync() const;
  std::string is_a_block_barrier_missing() const;
  std::string has_the_reader_waited_for_nothing() const;
  std::string what_was_waited_for_last() const;

  std::string what_the_writer_waited_for_last() const;
  std::string released_before_the_read(const Thread::Seen& of_writer) const;
  /// An arrival that comes for others of the warpgroup of the first thread, which has none of its own.
  WaitedFor arrival_of_others() const;
  /// Another thread of its warpgroup, or rather of its warp, that has executed a fence.proxy.async; or null.
  const Thread* who_fences_for_it() const;

  bool is_later_of_first(const Mbarrier::Arrival&) const;
  WaitedFor find_hand_over() const;
  const std::string& what_reads() const {
    return accesses_.first_writes ? accesses_.second_what : accesses_.first_what;
  }
  bool overwrites_too_early() const { return !accesses_.are_writes && !accesses_.reads_early; }

  const Thread &first_, &second_;
  const RaceChecker::Unordered& accesses_;
  const Thread &reader_, &writer_;
  const uint32_t first_epoch_, epoch_of_reader_, epoch_of_writer_;
  const bool reader_is_known_, writer_is_known_;
  WaitedFor
      hand_over_;  ///< the arrival that comes behind the first access, and that the second thread awaited
};

HandOver::HandOver(const Thread& first, const Thread& second, const RaceChecker::Unordered& accesses)
    : first_(first),
      second_(second),
      accesses_(accesses),
      reader_(accesses.first_writes ? second : first),
      writer_(accesses.first_writes ? first : second),
      first_epoch_(accesses.first_epoch),
      epoch_of_reader_(accesses.first_writes ? accesses.second_epoch : accesses.first_epoch),
      epoch_of_writer_(accesses.first_writes ? accesses.first_epoch : accesses.second_epoch),
      reader_is_known_(accesses.first_writes ? !accesses.second_is_operation || accesses.second_epoch
                                             : !accesses.first_is_operation || accesses.first_epoch),
      writer_is_known_(accesses.first_writes ? !accesses.first_is_operation || accesses.first_epoch
                                             : !accesses.second_is_operation || accesses.second_epoch),
      hand_over_(find_hand_over()) {}

std::string HandOver::explain() const {
  static constexpr Question kQuestions[] = {&HandOver::does_wgmma_read_another_slot,
                                            &HandOver::do_writes_share_a_place,
                                            &HandOver::is_a_barrier_initialised_too_late,
                                            &HandOver::has_a_ring_begun_again,
                                            &HandOver::is_a_fence_missing,
                                            &HandOver::is_a_store_waited_for_too_late,
                                            &HandOver::does_an_arrival_hand_over_too_early,
                                            &HandOver::does_the_second_arrive_in_flight,
                                            &HandOver::does_a_store_read_too_early,
                                            &HandOver::do_they_wait_for_two_slots,
                                            &HandOver::is_a_store_overtaken,
                                            &HandOver::is_a_copy_read_too_early,
                                            &HandOver::does_the_writer_write_again,
                                            &HandOver::do_others_arrive_for_the_first,
                                            &HandOver::is_an_arrival_relaxed,
                                            &HandOver::do_lanes_lack_a_syncwarp,
                                            &HandOver::do_blocks_lack_a_cluster_sync,
                                            &HandOver::is_a_block_barrier_missing,
                                            &HandOver::has_the_reader_waited_for_nothing,
                                            &HandOver::what_was_waited_for_last};
  for (const Question question : kQuestions)
    if (std::string answer = (this->*question)(); !answer.empty()) return answer;
  return "";
}

bool HandOver::is_later_of_first(const Mbarrier::Arrival& arrival) const {
  if (accesses_.first_is_operation && accesses_.first_what == "wgmma")
    return arrival.wgmma_in_flight && is_of_warpgroup(*arrival.thread, first_);
  return arrival.thread == &first_ && first_epoch_ && arrival.epoch >= first_epoch_;
}

/// The writer relies on the slot's own barrier, or on the one that it waited for last.
WaitedFor HandOver::find_hand_over() const {
  const auto is_wanted = [this](const Mbarrier::Arrival& arrival) { return is_later_of_first(arrival); };
  WaitedFor found;
  if (const Mbarrier* const empty =
          accesses_.first_writes ? nullptr : empty_end_of(*second_.block, accesses_.note_of_writer))
    found = find_waited_for(second_, accesses_.second_epoch, is_wanted, empty);
  if (const std::optional<Thread::Seen> last = seen_in(second_, accesses_.second_epoch);
      !found.arrival && last && last->barrier)
    found = find_waited_for(second_, accesses_.second_epoch, is_wanted, last->barrier);
  if (!found.arrival) found = find_waited_for(second_, accesses_.second_epoch, is_wanted);
  const bool is_of_other_places = found.arrival && accesses_.first_is_operation && !accesses_.lacks_fence &&
                                  speaks_of_other_places(*found.barrier, accesses_);
  return is_of_other_places ? WaitedFor{} : found;
}

std::string HandOver::does_wgmma_read_another_slot() const {
  if (accesses_.are_writes || what_reads() != "wgmma") return "";
  std::string text = explain_operand_over_end(reader_, writer_, epoch_of_reader_, accesses_.offset);
  return text.empty() ? explain_slots_of_operands(reader_, writer_, epoch_of_reader_, accesses_.offset)
                      : text;
}

std::string HandOver::do_writes_share_a_place() const {
  if (!accesses_.are_writes) return "";
  if (std::string text = explain_loads_to_one_place(first_, second_, accesses_); !text.empty()) return text;
  if (!accesses_.note_of_writer.empty())
    if (const Mbarrier* const empty = empty_end_of(*second_.block, accesses_.note_of_writer))
      if (const Mbarrier& full = *other_end(*empty); full.is_full)
        if (std::string text = explain_loader_ahead(second_, full, full.phase, /*are_writes=*/true);
            !text.empty())
          return text;
  if (&first_ == &second_ && are_loads_of_one_slot(first_, accesses_))
    return "should each fill a part of its own?";
  return "";
}

std::string HandOver::is_a_barrier_initialised_too_late() const {
  if (accesses_.first_what != "mbarrier.init") return "";
  if (accesses_.second_what == "mbarrier.init") return "one thread alone must initialise a barrier";
  return first_.block == second_.block
             ? "a __syncthreads must come between the initialisation and the use by other threads"
             : "a cluster_sync must come between the initialisation and the use by other blocks";
}

std::string HandOver::has_a_ring_begun_again() const {
  if (accesses_.lacks_fence) return "";
  for (const Thread* const thread : {&second_, &first_})
    if (std::string text = explain_restarted_ring(*thread->block, thread); !text.empty()) return text;
  return "";
}

const Thread* HandOver::who_fences_for_it() const {
  const Thread* found = nullptr;
  for (const auto& warp : first_.block->warps)
    for (const Thread* const one : warp.lanes)
      if (!one->proxy_fences.empty() && is_of_warpgroup(*one, first_) && (!found || one->warp == first_.warp))
        found = one;
  return found;
}

std::string HandOver::is_a_fence_missing() const {
  if (!accesses_.lacks_fence) return "";
  const Thread::Order fence = first_.proxy_fences.empty() ? Thread::Order{} : first_.proxy_fences.back();
  std::string text =
      print("the thread that %s, or one that has met it since, must execute fence.proxy.async after that",
            accesses_.first_writes ? "writes" : "reads");
  if (hand_over_.arrival)
    text += ", and before it arrives at " + name_of(*hand_over_.barrier) + " (" +
            own_place(hand_over_.arrival->where) + ")";
  if (!fence.epoch)
    if (const Thread* const other = who_fences_for_it())
      return text + print("; nothing orders the one of warp %u lane %u (", other->warp->index, other->lane) +
             own_place(other->proxy_fences.back().where) + ") between the two: is a " +
             (other->warp == first_.warp ? "__syncwarp" : "barrier of these threads") +
             " missing before that fence, or behind it?";
  if (!fence.epoch) return text + "; it has executed none";
  const char* const before = accesses_.first_writes ? "comes before the write" : "comes before the read";
  if (fence.epoch < first_epoch_ || !hand_over_.arrival)
    return text + "; its last one (" + own_place(fence.where) + ") " +
           (fence.epoch < first_epoch_     ? before
            : accesses_.first_is_operation ? "comes before it has waited for the " + accesses_.first_what
                                           : "comes too late");
  return text + explain_late_fence(first_, first_epoch_, *hand_over_.arrival, before);
}

std::string HandOver::is_a_store_waited_for_too_late() const {
  if (!overwrites_too_early()) return "";
  const bool first_stores = !accesses_.first_writes;
  if (!first_stores)
    if (std::string text = explain_store_before_write(first_, second_, accesses_); !text.empty()) {
      accesses_.retell("may be read before it is written: no barrier or wait orders the two");
      return text;
    }
  if (what_reads() != "TMA store") return "";
  return explain_barrier_before_store_wait(reader_, epoch_of_reader_, writer_, epoch_of_writer_);
}

std::string HandOver::does_an_arrival_hand_over_too_early() const {
  if (!hand_over_.arrival) return "";
  if (accesses_.first_is_operation)
    return who_and_where(*hand_over_.arrival->thread, *hand_over_.barrier, *hand_over_.arrival) +
           " before it has waited for its " + accesses_.first_what +
           explain_useless_wait(first_, accesses_.first_what, first_epoch_, second_, *hand_over_.arrival);
  return explain_weak_arrival(hand_over_, first_, second_);
}

/// The second was issued before the first came, and goes on.
std::string HandOver::does_the_second_arrive_in_flight() const {
  if (!accesses_.second_is_operation || accesses_.reads_early || !accesses_.second_epoch) return "";
  const auto is_later_of_second = [&](const Mbarrier::Arrival& arrival) {
    return arrival.thread == &second_ && arrival.epoch >= accesses_.second_epoch;
  };
  WaitedFor back = find_waited_for(first_, first_epoch_, is_later_of_second);
  // Where the copy says what it fills, the slot's own barrier: its writer may have waited there again.
  const Mbarrier* const empty = empty_end_of(*second_.block, accesses_.note_of_writer);
  if (empty && back.arrival && empty != back.barrier)
    for (const auto* arrivals : {&empty->earlier_arrivals, &empty->last_arrivals, &empty->arrivals})
      for (const Mbarrier::Arrival& one : *arrivals)
        if (back.barrier != empty && is_later_of_second(one)) back = {empty, &one, nullptr};
  if (!back.arrival || speaks_of_other_places(*back.barrier, accesses_)) return "";
  return who_and_where(second_, *back.barrier, *back.arrival) + " before it has waited for its " +
         accesses_.second_what +
         explain_useless_wait(second_, accesses_.second_what, accesses_.second_epoch, first_, *back.arrival);
}

std::string HandOver::does_a_store_read_too_early() const {
  if (!accesses_.reads_early) return "";
  if (what_reads() == "TMA store")
    if (std::string text = explain_source_of_store(writer_, reader_, accesses_); !text.empty()) return text;
  return accesses_.first_writes ? explain_store_before_write(first_, second_, accesses_) : "";
}

std::string HandOver::do_they_wait_for_two_slots() const {
  if (accesses_.are_writes || accesses_.is_rewritten || !accesses_.note_of_writer.empty() ||
      !reader_is_known_ || !writer_is_known_)
    return "";
  return explain_two_slots(writer_, epoch_of_writer_, reader_, epoch_of_reader_);
}

std::string HandOver::is_a_store_overtaken() const {
  if (accesses_.reads_early || what_reads() != "TMA store") return "";
  const Thread::Seen seen = seen_in(reader_, epoch_of_reader_).value_or(Thread::Seen{});
  const Mbarrier* const empty = seen.barrier ? other_end(*seen.barrier) : nullptr;
  // The reader's wait may be too weak, unless writers wait until the slot is empty.
  const bool is_of_ring = empty && !empty->waits.empty();
  if (accesses_.is_rewritten && (is_of_ring || reader_.last_store_wait.epoch <= epoch_of_reader_))
    if (std::string text = explain_writer_ahead(writer_, epoch_of_writer_, reader_, epoch_of_reader_);
        !text.empty())
      return text;
  return explain_store_wait(reader_, epoch_of_reader_, writer_, accesses_.second_what);
}

std::string HandOver::is_a_copy_read_too_early() const {
  if (!accesses_.reads_early || accesses_.note_of_writer.empty() || !reader_is_known_) return "";
  return explain_copy_not_waited_for(reader_, epoch_of_reader_, writer_, accesses_);
}

std::string HandOver::does_the_writer_write_again() const {
  if (!accesses_.reads_early || !accesses_.first_writes || accesses_.first_is_operation || !first_epoch_ ||
      hand_over_.arrival || !reader_is_known_)
    return "";
  const WaitedFor before = find_waited_for(
      second_, accesses_.second_epoch,
      [&](const Mbarrier::Arrival& one) { return one.thread == &first_ && one.epoch < first_epoch_; });
  if (!before.arrival || before.barrier != second_.last_seen.barrier) return "";
  return who_and_where(first_, *before.barrier, *before.arrival) + ", for which the reader has waited (" +
         own_place(before.wait->where) +
         (accesses_.is_rewritten
              ? "), and writes again: it must wait until that was read, or the reader wait for the next phase"
              : "), and writes this after that: should it write first, or the reader wait for the next "
                "arrival?");
}

WaitedFor HandOver::arrival_of_others() const {
  const auto of_others_in = [&](bool same_warp) {
    return find_waited_for(second_, accesses_.second_epoch, [&](const Mbarrier::Arrival& arrival) {
      return arrival.remote != ArrivalOrder::relaxed && arrival.thread != &first_ &&
             arrival.thread != &second_ && is_of_warpgroup(*arrival.thread, first_) &&
             (!same_warp || arrival.thread->warp == first_.warp);
    });
  };
  const WaitedFor of_its_warp = of_others_in(/*same_warp=*/true);  // which speaks for it more likely
  return of_its_warp.arrival ? of_its_warp : of_others_in(/*same_warp=*/false);
}

std::string HandOver::do_others_arrive_for_the_first() const {
  if (hand_over_.arrival || first_.warp == second_.warp || accesses_.first_is_operation ||
      !accesses_.second_epoch)
    return "";
  const WaitedFor of_others = arrival_of_others();
  if (!of_others.arrival) return "";
  // Who overwrites relies on what it waited for last.
  const std::optional<Thread::Seen> relied_on = seen_in(second_, accesses_.second_epoch);
  if (!accesses_.first_writes && relied_on && relied_on->barrier != of_others.barrier) return "";
  const WaitedFor of_first =
      find_waited_for(second_, accesses_.second_epoch,
                      [&](const Mbarrier::Arrival& arrival) { return arrival.thread == &first_; });
  if (of_first.barrier == of_others.barrier) return "";
  const Mbarrier& barrier = *of_others.barrier;
  const uint64_t phase = of_others.wait->phase;
  if (std::string count =
          explain_lanes_without(first_, accesses_.first_writes ? "writes" : "reads", barrier, phase,
                                barrier.phase == phase ? barrier.last_arrivals : barrier.earlier_arrivals);
      !count.empty())
    return count;
  const std::string arrives = who_and_where(*of_others.arrival->thread, barrier, *of_others.arrival);
  // Does the thread that arrives do so before it reads itself? Then the others do, too.
  const bool arrives_first =
      !accesses_.first_writes && accesses_.last_read_there &&
      accesses_.last_read_there(of_others.arrival->thread->number) > of_others.arrival->epoch;
  return arrives_first
             ? arrives +
                   ", and reads after that: it must arrive after the reads, or the writer wait for its "
                   "next arrival"
             : arrives + print(" for others, too, and nothing orders that behind what warp %u lane %u %s",
                               first_.warp->index, first_.lane, accesses_.first_writes ? "writes" : "reads");
}

std::string HandOver::is_an_arrival_relaxed() const {
  if (hand_over_.arrival || accesses_.first_is_operation) return "";
  const WaitedFor relaxed =
      find_waited_for(second_, accesses_.second_epoch, [&](const Mbarrier::Arrival& one) {
        return one.remote == ArrivalOrder::relaxed && is_of_warpgroup(*one.thread, first_);
      });
  return relaxed.arrival ? explain_weak_arrival(relaxed, first_, second_) : "";
}

std::string HandOver::do_lanes_lack_a_syncwarp() const {
  const bool reader_sends =
      what_reads() == "TMA store" &&
      !(accesses_.first_writes ? accesses_.first_is_operation : accesses_.second_is_operation);
  if (!accesses_.reads_early || !reader_sends || first_.warp != second_.warp || &first_ == &second_)
    return "";
  return print(
      "lane %u writes, and lane %u of the same warp issues the TMA store: lanes do not run in step, "
      "so a __syncwarp must come between",
      writer_.lane, reader_.lane);
}

std::string HandOver::do_blocks_lack_a_cluster_sync() const {
  if (first_.block == second_.block || first_.last_seen.barrier || second_.last_seen.barrier ||
      accesses_.first_is_operation || accesses_.second_is_operation)
    return "";
  return "these are threads of two blocks of the cluster, " + describe(*first_.block) + " and " +
         describe(*second_.block) + ": a cluster_sync must come between, and a __syncthreads is none" +
         (!accesses_.overwrites
              ? ""
              : "; or the write, if it is of the next round, needs another element than the round before");
}

std::string HandOver::is_a_block_barrier_missing() const {
  return explain_block_barrier(first_, second_, accesses_);
}

std::string HandOver::has_the_reader_waited_for_nothing() const {
  if (!accesses_.reads_early || !accesses_.first_writes || accesses_.first_is_operation) return "";
  if (reader_is_known_ && accesses_.is_rewritten)
    if (std::string text = explain_writer_ahead(first_, first_epoch_, reader_, epoch_of_reader_);
        !text.empty())
      return text;
  return explain_no_wait(first_, reader_, reader_is_known_ ? epoch_of_reader_ : 0);
}

std::string HandOver::what_was_waited_for_last() const {
  if (!accesses_.reads_early) return what_the_writer_waited_for_last();
  return reader_is_known_ ? explain_last_wait(reader_, epoch_of_reader_) : "";
}

std::string HandOver::released_before_the_read(const Thread::Seen& of_writer) const {
  if (accesses_.first_writes || !reader_is_known_) return "";
  const WaitedFor early = find_waited_for(second_, accesses_.second_epoch, [&](const auto& arrival) {
    return arrival.thread == &first_ && first_epoch_ && arrival.epoch < first_epoch_;
  });
  if (early.barrier != of_writer.barrier) return "";
  return print("; warp %u lane %u arrives there before this ", first_.warp->index, first_.lane) +
         accesses_.first_what;
}

std::string HandOver::what_the_writer_waited_for_last() const {
  const Thread::Seen seen = seen_in(writer_, epoch_of_writer_).value_or(Thread::Seen{});
  if (!writer_is_known_ || !seen.barrier || accesses_.are_writes) return "";
  if (std::string unheard = explain_unheard(first_, second_, accesses_); !unheard.empty()) return unheard;
  const auto* const ended_by = seen.phase ? arrivals_of(seen) : nullptr;
  const bool heard_itself_alone =
      !accesses_.first_writes && first_.warp != writer_.warp && ended_by && !ended_by->empty() &&
      std::all_of(ended_by->begin(), ended_by->end(),
                  [&](const Mbarrier::Arrival& one) { return one.thread->warp == writer_.warp; });
  if (ended_by && !heard_itself_alone && !accesses_.first_writes && !accesses_.first_is_operation)
    if (std::string count = explain_lanes_without(first_, "reads", *seen.barrier, seen.phase, *ended_by);
        !count.empty())
      return count;
  if (const std::string count = explain_phases_ahead(*seen.barrier); seen.phase && !count.empty())
    return "the count of " + name_of(*seen.barrier) + ", for which " + describe(writer_) +
           " waited before it writes, is too small" + count;
  const uint32_t mask = mask_of(writer_, *first_.block, accesses_);
  const std::string unneeded =
      accesses_.first_writes || !seen.phase ? "" : explain_unneeded(seen, first_, mask);
  const std::string released = released_before_the_read(seen);  // then its own wait may be a later one
  return describe(writer_) + " writes" + explain_mask(*writer_.block, mask) + ", and waited last for " +
         name_of(*seen.barrier) +
         (seen.phase
              ? print(", whose phase %llu had ended", static_cast<unsigned long long>(seen.phase - 1)) +
                    (unneeded.empty() ? with_arrivals_of(seen) : unneeded)
              : explain_first_parity(seen)) +
         (reader_is_known_ && unneeded.empty() && released.empty()
              ? explain_other_slot(seen, seen_in(reader_, epoch_of_reader_))
              : "") +
         released + explain_same_parity(seen) +
         (heard_itself_alone
              ? ", which tells nothing of those who read: a __syncthreads, or an arrival of theirs that the "
                "writer waits for, must come before it writes"
              : "");
}

}  // namespace

std::string explain_hand_over(const Thread& first, const Thread& second,
                              const RaceChecker::Unordered& accesses) {
  return HandOver(first, second, accesses).explain();
}

}  // namespace cpu_device
