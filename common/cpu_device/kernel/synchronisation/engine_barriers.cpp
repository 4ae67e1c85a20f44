/// @file
/// __syncthreads, the named barriers of a block, and cluster.sync.
#include "common/cpu_device/kernel/engine_barriers.hpp"

#include <algorithm>
#include <utility>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {
namespace {

constexpr const char* kSyncthreads = "__syncthreads";

/// Warps of which every lane had to wait: where one lane came last, its warp did not wait.
unsigned count_waiting_warps(const std::vector<Thread*>& waiting) {
  unsigned lanes[kMaxWarps] = {}, warps = 0;
  for (const Thread* thread : waiting) {
    const auto all = static_cast<unsigned>(__builtin_popcount(thread->warp->live));
    warps += ++lanes[thread->warp->index] == all;
  }
  return warps;
}

/// What a thread learns that has waited in a barrier of some warps.
void observe(Thread& thread, const NamedBarrier& barrier) {
  if (RaceChecker* races = thread.cluster.races()) races->acquire(thread.number, barrier.released);
  if (VirtualClock* clock = thread.cluster.clock()) {
    clock->wait_until(thread.number, barrier.latest_arrival, "named barrier");
  }
}

void arrive(Thread& thread, unsigned id, unsigned threads, Location where) {
  Cluster& cluster = thread.cluster;
  Block& block = *thread.block;
  if (id >= kNamedBarriers) cluster.fail(thread, print("named barrier %u; a block has 16", id), where);
  if (threads % kWarpLanes) {
    cluster.fail(thread, print("named barrier %u for %u threads, which are not whole warps", id, threads),
                 where);
  }
  NamedBarrier& barrier = block.barriers[id];
  if (!threads && block.live < block.ids.threads) {
    cluster.fail(thread,
                 "__syncthreads, which not all threads of the block call: threads of the block have exited" +
                     explain_early_exits(block),
                 where);
  }
  if (barrier.arrived && barrier.expected != threads) {
    cluster.fail(thread,
                 print("named barrier %u for %u threads, while others came to it for %u at ", id, threads,
                       barrier.expected) +
                     to_string(barrier.where),
                 where);
  }
  if (!barrier.arrived) barrier.where = where;
  if (!threads && !(barrier.where == where)) {
    cluster.fail(thread,
                 "divergent __syncthreads: threads of one block meet in different calls, here and at " +
                     to_string(barrier.where),
                 where);
  }
  if (!threads) {
    const CallChain calls = calls_to_here(thread);
    if (!barrier.arrived) barrier.calls = calls;
    if (const std::string differ = difference(calls, barrier.calls, "others"); !differ.empty()) {
      cluster.fail(
          thread,
          "divergent __syncthreads: threads of one block come to it by different calls, this one by " +
              differ,
          where);
    }
  }
  barrier.expected = threads;
  ++barrier.arrived;
  barrier.arrivals.push_back(&thread);
  if (RaceChecker* races = cluster.races(); races && !threads)
    thread.block_barriers.push_back({where, races->epoch(thread.number)});
  if (!threads) return;
  barrier.of_threads.resize(block.ids.threads);
  NamedBarrier::ArrivalsOfThread& ever = barrier.of_threads[thread.ids.rank];
  ++ever.times;
  ever.last = where;
  // A thread that only arrives goes on at once: the barrier orders nothing that the thread does later.
  if (RaceChecker* races = cluster.races()) races->release(thread.number, barrier.released);
  if (VirtualClock* clock = cluster.clock()) {
    barrier.latest_arrival = std::max(barrier.latest_arrival, clock->now(thread.number));
  }
}

}  // namespace

void block_barrier(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  named_barrier_sync(0, 0, where);
}

unsigned block_vote(bool predicate, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  NamedBarrier& barrier = this_thread(where).block->barriers[0];
  barrier.votes += predicate;
  named_barrier_sync(0, 0, where);
  return barrier.last_votes;
}

void named_barrier_sync(unsigned id, unsigned threads, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  cluster.jitter(thread);
  arrive(thread, id, threads, where);
  NamedBarrier& barrier = thread.block->barriers[id];
  const unsigned expected = barrier.expected ? barrier.expected : thread.block->live;
  thread.synchronised = true;
  if (barrier.arrived >= expected) {
    if (threads) observe(thread, barrier);
    complete_if_all_arrived(cluster, *thread.block, id);
    cluster.leave_if_failed();
  } else {
    barrier.waiting.push_back(&thread);
    cluster.park(thread, {WaitKind::block_barrier, &barrier, id, id ? "named barrier" : kSyncthreads, where});
  }
}

bool named_barrier_or(unsigned id, unsigned threads, bool yes, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  auto& barriers = this_thread(where).block->barriers;
  if (id < kNamedBarriers) barriers[id].votes += yes;
  named_barrier_sync(id, threads, where);  // which refuses other numbers
  return barriers[id].last_votes > 0;
}

void named_barrier_arrive(unsigned id, unsigned threads, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  thread.cluster.jitter(thread);
  arrive(thread, id, threads, where);
  if (threads) thread.block->barriers[id].of_threads[thread.ids.rank].last_without_wait = where;
  complete_if_all_arrived(thread.cluster, *thread.block, id);
}

void complete_if_all_arrived(Cluster& cluster, Block& block, unsigned id) {
  NamedBarrier& barrier = block.barriers[id];
  const unsigned expected = barrier.expected ? barrier.expected : block.live;
  if (!barrier.arrived || barrier.arrived < expected) return;
  cluster.count_progress();
  if (id == 0) ++cluster.totals().block_barriers;
  cluster.totals().barrier_waits += count_waiting_warps(barrier.waiting);

  if (barrier.expected) {
    for (Thread* thread : barrier.waiting) observe(*thread, barrier);
    barrier.released.clear();
    barrier.latest_arrival = 0;
  } else {
    const unsigned first = block.ids.rank_in_cluster * block.ids.threads;
    if (RaceChecker* races = cluster.races()) races->barrier_range(first, block.ids.threads);
    if (VirtualClock* clock = cluster.clock()) clock->barrier(first, block.ids.threads, kSyncthreads);
  }
  if (barrier.arrived == block.ids.threads) cluster.converged(block);
  barrier.arrived = 0;
  barrier.last_votes = std::exchange(barrier.votes, 0);
  barrier.arrivals.clear();
  for (Thread* thread : barrier.waiting) cluster.wake(*thread);
  barrier.waiting.clear();
  cluster.note_passed(block, id ? "named barrier" : kSyncthreads, barrier.where);
}

void cluster_barrier(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  cluster.jitter(thread);
  NamedBarrier& barrier = cluster.cluster_barrier();
  thread.synchronised = true;
  ++barrier.arrived;
  barrier.arrivals.push_back(&thread);
  if (barrier.arrived == cluster.live()) {
    complete_cluster_barrier(cluster);
    cluster.leave_if_failed();
    return;
  }
  if (thread.lane == 0) ++cluster.totals().barrier_waits;
  barrier.waiting.push_back(&thread);
  cluster.park(thread, {WaitKind::block_barrier, &barrier, 0, "cluster.sync", where});
}

void cluster_barrier_arrive(ArrivalOrder order, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  cluster.jitter(thread);
  NamedBarrier& barrier = cluster.cluster_barrier();
  if (thread.cluster_arrival.is_open)
    cluster.fail(thread, "barrier.cluster.arrive twice, without a barrier.cluster.wait between", where);
  thread.cluster_arrival = {true, barrier.phase};
  thread.synchronised = true;
  ++barrier.arrived;
  barrier.arrivals.push_back(&thread);
  barrier.arrived_apart.push_back(thread.number);
  if (RaceChecker* races = cluster.races()) {
    order == ArrivalOrder::release ? races->release(thread.number, barrier.released)
                                   : races->release_operations(thread.number, barrier.released);
  }
  complete_cluster_barrier(cluster);
  cluster.leave_if_failed();
}

void cluster_barrier_wait(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  cluster.jitter(thread);
  NamedBarrier& barrier = cluster.cluster_barrier();
  if (!thread.cluster_arrival.is_open)
    cluster.fail(thread, "barrier.cluster.wait without a barrier.cluster.arrive before it", where);
  thread.synchronised = true;
  if (barrier.phase == thread.cluster_arrival.phase) {
    if (thread.lane == 0) ++cluster.totals().barrier_waits;
    barrier.waiting.push_back(&thread);
    cluster.park(thread, {WaitKind::block_barrier, &barrier, 0, "barrier.cluster.wait", where});
  }
  thread.cluster_arrival.is_open = false;
  if (RaceChecker* races = cluster.races()) races->acquire(thread.number, barrier.completed);
}

namespace {

/// Threads that arrive and wait apart know of the others what those released, and what the others meet at
/// once; the clock makes no difference between the two.
void order_in_cluster(Cluster& cluster, NamedBarrier& barrier, const std::vector<unsigned>& all) {
  RaceChecker* const races = cluster.races();
  if (!races) return;
  if (barrier.arrived_apart.empty()) {
    races->barrier(all.data(), static_cast<unsigned>(all.size()));
    return;
  }
  std::vector<unsigned> together;
  for (const unsigned thread : all) {
    const auto& apart = barrier.arrived_apart;
    if (std::find(apart.begin(), apart.end(), thread) == apart.end()) together.push_back(thread);
  }
  for (const unsigned thread : together) races->release(thread, barrier.released);
  barrier.completed = barrier.released;
  barrier.released.clear();
  for (const unsigned thread : together) races->acquire(thread, barrier.completed);
}

}  // namespace

void complete_cluster_barrier(Cluster& cluster) {
  NamedBarrier& barrier = cluster.cluster_barrier();
  if (!barrier.arrived || barrier.arrived < cluster.live()) return;
  cluster.count_progress();
  cluster.land_before_cluster_sync();
  // Threads that have exited did not arrive: what they did is not ordered, and they hold nobody up.
  std::vector<unsigned> threads;
  for (const Thread* thread : barrier.arrivals) threads.push_back(thread->number);
  const auto count = static_cast<unsigned>(threads.size());
  order_in_cluster(cluster, barrier, threads);
  barrier.arrived_apart.clear();
  ++barrier.phase;
  if (VirtualClock* clock = cluster.clock()) clock->barrier_of(threads.data(), count, "cluster.sync");
  for (auto& block : cluster.blocks()) {
    cluster.converged(*block);
    block->mappings.clear();
  }
  barrier.arrived = 0;
  barrier.arrivals.clear();
  for (Thread* waiting : barrier.waiting) cluster.wake(*waiting);
  barrier.waiting.clear();
  if (current_thread)
    cluster.note_passed(*cluster.blocks().front(), "cluster.sync", current_thread->last_call);
}

void Cluster::converged(Block& block) {
  for (Warp& warp : block.warps) converged(warp);
}

void Cluster::converged(Warp& warp) {
  flush_copy_instructions(warp);
  if (counting_) access_counter_.converge_warp(warp.number);
}

}  // namespace cpu_device
