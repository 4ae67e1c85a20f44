/// @file
/// The words for what a failure speaks of: arrivals, waits, and what one thread hands over to another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

class Cluster;
struct Block;
struct CountedCopy;
struct Thread;
struct TmaBox;

/// " warp 0 (arrive at gemm.cuh:40) x32, ...". In a cluster with the block of each that is not `own`.
/// @param says_bytes how many bytes each copy has brought, too
std::string list(const std::vector<Mbarrier::Arrival>&, const Block* own = nullptr, bool says_bytes = false);
/// Those that brought bytes, or those that arrived.
std::vector<Mbarrier::Arrival> with_bytes(const std::vector<Mbarrier::Arrival>&, bool bytes);
/// Why the bytes of a copy come after the phase in which it was issued: the sender is ahead, or too few
/// bytes were expected; and who brought those that came in time.
std::string explain_bytes_too_late(Cluster&, const CountedCopy&);
/// The same where a multicast, perhaps another one, names a wrong block: who sends it, where, and whom it
/// reaches. Empty if the masks do not tell.
std::string explain_wrong_mask(Cluster&, const CountedCopy&, const Thread*& sender, Location&);
/// A load that writes one slot and counts at the barrier of another, as other loads of the sender show: half
/// a sentence, or nothing.
std::string explain_slot_of_load(const Thread& sender, size_t offset, const Mbarrier&);
/// What it means that more bytes came than were expected, where they are those of a whole phase.
std::string explain_surplus(const Mbarrier&);
/// A line that says who arrived in the phase in progress and what it waits for; empty if for no bytes.
std::string explain_open_phase(const Mbarrier&);
/// That line, and why the running thread, which does `what`, comes too early: what it waited for before.
std::string explain_arrival_too_many(const Thread&, const Mbarrier&, const char* what, Location where);
/// Where those who read the slots of a pipeline fill them, too, and nobody fills those of another: half a
/// sentence; or nothing. A thread `arrives`, too, at this moment.
std::string explain_wrong_pipeline(const Mbarrier&, const Thread* arrives = nullptr, Location where = {});
/// " reaches over the end of ...": names the array that a box begins in or behind, and gives the number of
/// rows of both. Nothing where the box ends within the block's shared memory, or no array has rows of the
/// box's length.
std::string explain_box_over_end(Thread&, const TmaBox&, const void* shared);
/// A copy came when its phase had ended. Of the loads to that barrier one begins within the rows of an array,
/// and reaches over its end; and the phase expected as many bytes as would come if that load, and others of
/// its line, ended there. Half a sentence; empty if there is none.
std::string explain_box_over_rows(Cluster&, const CountedCopy&);
/// Why two accesses have no order: what should have handed over from the one thread to the other, and what is
/// wrong with it. Half a sentence, or nothing.
std::string explain_hand_over(const Thread& first, const Thread& second, const RaceChecker::Unordered&);
/// Which threads of the block have exited, and which of their warps live and wait elsewhere than in the
/// __syncthreads: ": warps 2-3 lanes 1-31; of the others, warp 2 lane 0 waits at ...".
std::string explain_early_exits(const Block&);
/// Whose place in a ring began again, while the barriers had gone on: of the thread's warp, or of the block.
/// `late` waits in vain for what has ended. Half a sentence, or nothing.
std::string explain_restarted_ring(const Block&, const Thread* thread, const Thread* late = nullptr);
/// Which wait of a thread of the block passed too early, if one did; with `thread`, of its warp. It must be
/// wrong: not one that others have run away from.
std::string explain_wrong_wait(const Block&, const Thread* thread);
/// "5 fills of pipe_lc.full[0] were begun, and warps 0-7 have waited 4 times (gemm.cuh:66): ...": of a ring
/// to which a copy is in flight that nobody waits for. Half a sentence; nothing if as often was waited.
std::string explain_fill_too_many(const CountedCopy&);
/// That one, or a right wait whose slot another thread has released before.
std::string explain_early_wait(const Block&, const Thread* thread);
/// "warp 4 lane 0 passed this wait, and arrived at turn[0] (gemm.cuh:75), before ... had looked": of threads
/// that wait together, one that went on and let others change the barrier, before those that are `late` had
/// seen the phase. Half a sentence; nothing where these are not of one role.
std::string explain_left_behind(const Mbarrier&, const std::vector<const Thread*>& late);
/// A line that says which thread of the block has waited too early, or twice for the same phase, if one has:
/// the parity may be wrong.
std::string explain_repeated_wait(const Block&);
/// Of the threads that arrived in two phases, none in both: perhaps all were meant for one. Or nothing.
std::string explain_count(const Mbarrier&, const std::vector<Mbarrier::Arrival>& before,
                          const std::vector<Mbarrier::Arrival>& after);
/// Of a slot that was emptied more often than filled: who emptied it too early. Half a sentence, or nothing.
std::string explain_early_release(const Mbarrier& one_of_its_ends);
/// A line that says who ended the last two phases and, where no other cause is known, whether the count is
/// too small.
std::string explain_two_phases(const Mbarrier&, bool asks_for_count);
/// Why others of the cluster cannot reach into the block, which has exited, any more.
std::string explain_exit(const Block&);
/// The report for a cluster in which nobody can go on.
std::string describe_deadlock(const Cluster&, const char* why);

}  // namespace cpu_device
