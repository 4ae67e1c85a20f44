/// @file
/// What a deadlock is told from: who has come to an mbarrier and who has not, and which mbarriers belong
/// together; and the words that several sentences about it share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/kernel/engine_mbarriers.hpp"

namespace cpu_device {

struct Block;
struct Thread;
struct Wait;

/// Does the thread wait at an mbarrier, or ask it again and again?
bool is_at_mbarrier(const Thread& thread);
/// The one that the thread waits for, which is_at_mbarrier().
const Mbarrier& mbarrier_of(const Thread& thread);
/// How many phases the thread, which is of the barrier's block, has seen end, or passed by.
uint64_t seen_by(const Mbarrier& barrier, const Thread& thread);
/// In its first phase, in which nobody has arrived, and no bytes are missing or too many.
bool is_unused(const Mbarrier& barrier);
/// Another of the same array, or the same.
bool is_sibling(const Mbarrier& one, const Mbarrier& other);
/// Barriers at the same end of all slots.
std::vector<const Mbarrier*> siblings_of(const Mbarrier& barrier);
/// "a slot of pipe_lc.full", or "pipe_lc.full[0]" where there is one slot.
std::string slot_of_ring(const Mbarrier& barrier);
/// Waits that have ended, at this end of all slots; the thread is of the barrier's block.
uint64_t waits_in_ring(const Mbarrier& barrier, const Thread& thread);
uint64_t arrivals_in_ring(const Mbarrier& barrier, const Thread& thread);
/// The barrier at the same place in another block; null if there is none.
const Mbarrier* counterpart_in(const Block& block, const Mbarrier& barrier);
/// Threads of other warpgroups may share the ring that the thread reads, and have come to none of its slots,
/// as they wait for their turn, which nobody has ever passed to anybody: phases that this thread has not
/// waited for are theirs. What these wait for; null if there are none.
const Mbarrier* turn_of_others(const Mbarrier& barrier, const Thread& thread);
/// Has the thread missed phases that were meant for it? Where threads share a ring, each may wait for some
/// phases alone: what another thread has waited for says nothing.
bool has_missed(const Mbarrier& barrier, const Thread& thread);
/// Has the thread arrived in the phase in progress?
bool came(const Mbarrier& barrier, const Thread* thread);
/// Threads that arrived in the phase before, and have not in this one.
std::vector<const Thread*> absent_from(const Mbarrier& barrier);
/// A bit for each block that receives the multicasts which fill the slot; 0 if none do.
uint32_t blocks_that_share(const Mbarrier& one_of_its_ends);
/// " (gemm.cuh:82)": where the thread's warpgroup arrived in this phase or the one before; or nothing.
std::string place_of_arrival(const Mbarrier& barrier, const Thread& thread);

constexpr std::ptrdiff_t kMostGroups = 2;  ///< that a line names

/// "now wait at gemm.cuh:73 for full[0]", or "have exited"; where they wait for several things, "of these
/// warps 0-3 now wait at ..., ...". Half a sentence, behind the names of the threads.
/// @param are_lanes they take a verb in the plural, whatever names_of() says
std::string where_now(const std::vector<const Thread*>& threads, bool are_lanes = false);
/// The same with the names of the threads.
std::string where_others_wait(const std::vector<const Thread*>& threads);
/// " 2", of a named barrier.
std::string number_of_barrier(const Wait& wait);
/// "once", "twice", "3 times".
std::string times(uint64_t count);
/// " block (1,0,0)", or " blocks (1,0,0) to (3,0,0)".
std::string ranges_of_blocks(const std::vector<const Block*>& blocks);

}  // namespace cpu_device
