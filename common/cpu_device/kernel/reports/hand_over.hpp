/// @file
/// What hand_over.cpp asks of two accesses without an order; each answer is half a sentence, or nothing.
/// Private to the files hand_over*.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_thread.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

// Of mbarriers: hand_over_mbarriers.cpp.

/// What a thread had waited for last in its epoch, if that is known; epoch 0 is now. An operation may be
/// found long after its issue.
std::optional<Thread::Seen> seen_in(const Thread& thread, uint32_t epoch);
/// Those that ended the phase before; null if they are not kept any more.
const std::vector<Mbarrier::Arrival>* arrivals_of(const Thread::Seen& seen);
/// " with the arrivals of warps 0, 4 (...)". Where threads arrived, too, not of the bytes.
std::string with_arrivals_of(const Thread::Seen& seen);

/// An arrival that a thread has waited for.
struct WaitedFor {
  const Mbarrier* barrier = nullptr;
  const Mbarrier::Arrival* arrival = nullptr;
  const Mbarrier::Wait* wait = nullptr;
};

/// Of the arrivals that `waiter` had waited for in its epoch, the first that `is_wanted`; with `only`, of
/// those at that barrier.
template <class Condition>
WaitedFor find_waited_for(const Thread& waiter, uint32_t epoch, const Condition& is_wanted,
                          const Mbarrier* only = nullptr) {
  WaitedFor found;
  for (const auto& barrier : waiter.block->mbarriers) {
    if (only && barrier.get() != only) continue;
    if (barrier->last_waits.empty()) continue;
    const Mbarrier::Wait& wait = barrier->last_waits[waiter.ids.rank];
    if (!wait.phase || (epoch && wait.epoch > epoch) || barrier->phase - wait.phase > 1) continue;
    for (const auto& one :
         barrier->phase == wait.phase ? barrier->last_arrivals : barrier->earlier_arrivals) {
      if (one.bytes || !is_wanted(one)) continue;
      if (found.arrival && found.arrival->epoch <= one.epoch) continue;
      found = {barrier.get(), &one, &wait};
    }
  }
  return found;
}

std::string who_and_where(const Thread& thread, const Mbarrier& barrier, const Mbarrier::Arrival& arrival);
bool is_of_warpgroup(const Thread& one, const Thread& other);
/// The other end of the slot that a copy of this note fills: what its writer must wait for. Null if unknown.
const Mbarrier* empty_end_of(const Block& block, const std::string& note_of_writer);
/// Of a wait that passed before the first phase had ended, as its parity says: the second in a row does so
/// because the parity has not changed.
std::string explain_first_parity(const Thread::Seen& seen);
/// The same of a later phase, for which the thread had waited before; else nothing.
std::string explain_same_parity(const Thread::Seen& seen);
/// What a thread that reads too early had waited for last, in its epoch.
std::string explain_last_wait(const Thread& thread, uint32_t epoch);
/// "phase 0 of empty ended with the arrivals of warp 0 (...) x32, as its count of 32 says (mine.cuh:64); warp
/// 1 lane 0, which reads, ...": where lanes of one warp arrive each for itself, and a thread of its warpgroup
/// is none of them. Else nothing.
std::string explain_lanes_without(const Thread& thread, const char* does, const Mbarrier& barrier,
                                  uint64_t phase, const std::vector<Mbarrier::Arrival>& kept);
/// An arrival of the first thread, later than its access, that orders nothing: it is relaxed, or the wait has
/// too small a scope.
std::string explain_weak_arrival(const WaitedFor& hand_over, const Thread& first, const Thread& second);
/// Who reads has waited for no mbarrier, or for another barrier, and the warp that writes arrives somewhere.
std::string explain_no_wait(const Thread& writer, const Thread& reader, uint32_t epoch_of_reader);
/// The reader has waited until a slot was full, and its warpgroup that fills it does so without waiting.
std::string explain_writer_ahead(const Thread& writer, uint32_t epoch_of_writer, const Thread& reader,
                                 uint32_t epoch_of_reader);
/// More phases have ended than any thread has waited for, and threads of one warpgroup ended the last two by
/// one line, each thread one of them: half a sentence; or nothing.
std::string explain_phases_ahead(const Mbarrier& barrier);
/// Where nobody of the reader's block, or warpgroup, arrived in the phase of the empty slot that the writer
/// waited for: what this did with, and its count; else nothing. The writer sends with the mask; 0: to itself.
std::string explain_unneeded(const Thread::Seen& seen, const Thread& reader, uint32_t mask);
/// The reader's warpgroup arrives at a barrier of the writer's block for which nobody has ever waited.
std::string explain_unheard(const Thread& first, const Thread& second,
                            const RaceChecker::Unordered& accesses);
/// The writer waited until one slot of a pipeline was empty, and the reader until another was full.
std::string explain_other_slot(const Thread::Seen& writers, const std::optional<Thread::Seen>& readers);
/// The same of a writer that is no copy and writes there first, as a sentence of its own. Nothing if the
/// reader has ever waited for the writer's slot, or if the writer may have acquired the reader's and not
/// handed that over yet.
std::string explain_two_slots(const Thread& writer, uint32_t epoch_of_writer, const Thread& reader,
                              uint32_t epoch_of_reader);
/// A copy fills a slot again, and its reader has waited for all phases that have ended: then the loader is
/// ahead, which has not waited as often until the slot was empty; likewise where two copies fill the slot.
/// Half a sentence; nothing if it has waited.
std::string explain_loader_ahead(const Thread& loader, const Mbarrier& full, uint64_t seen_by_reader,
                                 bool are_writes = false);
/// A copy of the writer's that counts its bytes at the barrier of this note is read before they have landed.
std::string explain_copy_not_waited_for(const Thread& reader, uint32_t epoch, const Thread& writer,
                                        const RaceChecker::Unordered& accesses);

// Of what runs on its own: hand_over_async.cpp.

/// Where a cp.async belongs to no group when its thread comes to the next __syncthreads: no wait before that
/// covers it. Empty if it does, or if that is not known.
std::string explain_late_commit(const Thread& thread, uint32_t epoch, size_t offset);
/// Of a thread whose cp.async no wait had covered when it came to a __syncthreads: its last wait, which comes
/// after that, or leaves newer copies in flight on purpose. Empty if neither is so.
std::string explain_copy_wait(const Thread& thread, const Thread::Order& barrier);
/// One thread does both, so no barrier can order them: which of its waits does not cover the copy.
std::string explain_own_copy(const Thread& thread, const RaceChecker::Unordered& accesses);
/// Of a thread whose wait leaves newer groups in flight: whether it has not closed the newest yet.
std::string explain_open_copies(const Thread& thread);
/// Why a thread had not waited for its wgmma when it came to a __syncthreads.
std::string explain_wgmma_wait(const Thread& thread, uint32_t issued_in, const Thread::Order& barrier);
/// The descriptor of a wgmma begins in one array, and what it reads lies in another: half a sentence. Nothing
/// if an operand of the same epoch that begins in the array of the byte reads it, too.
/// Likewise in one slot, and in another that `writer` does not fill together with it.
std::string explain_operand_over_end(const Thread& reader, const Thread& writer, uint32_t epoch,
                                     size_t offset);
/// A wgmma takes A and B from slots of different numbers, though `writer` fills those of one number together.
std::string explain_slots_of_operands(const Thread& reader, const Thread& writer, uint32_t epoch,
                                      size_t offset);
/// A TMA store of `issuer` may still read what `writer` overwrites: which commit or wait of the issuer is
/// missing, or what must order its wait and the write, which `what_writes` if that is known.
std::string explain_store_wait(const Thread& issuer, uint32_t issued_in, const Thread& writer,
                               const std::string& what_writes = "");
/// Both have met in a __syncthreads between the TMA store and the write, and the issuer waits for its store
/// behind that, or not at all: half a sentence; else nothing.
std::string explain_barrier_before_store_wait(const Thread& issuer, uint32_t issued_in, const Thread& writer,
                                              uint32_t written_in);
/// A thread writes what a TMA store of another reads, in the same round, and nothing orders the write before
/// the store, though it is meant to be. Half a sentence; nothing where the write may be one of a later round.
std::string explain_store_before_write(const Thread& writer, const Thread& issuer,
                                       const RaceChecker::Unordered& accesses);
/// Of a thread that has waited for TMA stores, or wgmma, since it issued this one, before it arrived: why
/// that does not cover it.
std::string explain_useless_wait(const Thread& issuer, const std::string& what, uint32_t issued_in,
                                 const Thread& writer, const Mbarrier::Arrival&);
/// A TMA store reads where another warp writes, and what its own warp has written is as large and lies beside
/// that in the same array: the place of the source is another warp's.
std::string explain_source_of_store(const Thread& writer, const Thread& reader,
                                    const RaceChecker::Unordered& accesses);

}  // namespace cpu_device
