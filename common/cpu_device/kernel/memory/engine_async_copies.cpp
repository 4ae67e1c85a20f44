/// @file
/// cp.async: copies from global to shared memory that a thread issues, groups and waits for.
#include "common/cpu_device/kernel/engine_async_copies.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/memory/engine_global_memory.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"

namespace cpu_device {
namespace {

/// cp.async writes shared memory through the generic proxy.
void perform(Cluster& cluster, const CopyGroup& group, Copy& copy) {
  if (copy.landed) return;
  copy.landed = true;
  if (copy.source_bytes) std::memcpy(copy.shared, copy.global, copy.source_bytes);
  std::memset(copy.shared + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
  if (RaceChecker* races = cluster.races()) {
    Block& block = *group.issuer->block;
    races->access(group.race_operations[copy.race_operation], block.ids.rank_in_cluster,
                  static_cast<size_t>(copy.shared - block.shared.generic()), copy.bytes, /*write=*/true);
  }
}

/// Counts the k-th cp.async of all lanes as one instruction of the warp, as soon as all lanes have issued it.
void count_copy(Thread& thread, const Copy& copy) {
  Warp& warp = *thread.warp;
  const size_t k = thread.copies_since_convergence++;
  if (warp.copy_instructions.size() <= k) warp.copy_instructions.resize(k + 1);
  warp.copy_instructions[k].push_back(copy);
}

void check_operands(Thread& thread, const void* shared, const void* global, uint32_t bytes,
                    uint32_t source_bytes, Location where) {
  Cluster& cluster = thread.cluster;
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    cluster.fail(thread, print("cp.async of %u bytes; it copies 4, 8 or 16", bytes), where);
  }
  if (source_bytes > bytes) {
    cluster.fail(thread, print("cp.async of %u bytes from a source of %u", bytes, source_bytes), where);
  }
  shared_offset(thread, shared, bytes, "cp.async", where);
  if (reinterpret_cast<uintptr_t>(shared) % bytes) {
    cluster.fail(thread, print("cp.async of %u bytes to a misaligned address in shared memory", bytes),
                 where);
  }
  if (reinterpret_cast<uintptr_t>(global) % bytes) {
    cluster.fail(thread, print("cp.async of %u bytes from a misaligned address in global memory", bytes),
                 where);
  }
  if (const std::string blame = blame_global_access(thread, global, source_bytes); !blame.empty())
    cluster.fail(thread, print("cp.async: its source of %u bytes ", source_bytes) + blame, where);
}

CopyGroup& open_group(Thread& thread) {
  if (!thread.open_copies) {
    thread.open_copies = std::make_unique<CopyGroup>();
    thread.open_copies->issuer = &thread;
    thread.open_copies->queue = &thread;
  }
  return *thread.open_copies;
}

std::unique_ptr<CopyGroup> close_group(Thread& thread, Location where) {
  CopyGroup& group = open_group(thread);
  group.where = group.copies.empty() ? where : group.copies.front().where;
  return std::move(thread.open_copies);
}

}  // namespace

void copy_async(void* shared, const void* global, uint32_t bytes, uint32_t source_bytes, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  check_operands(thread, shared, global, bytes, source_bytes, where);

  CopyGroup& group = open_group(thread);
  uint32_t epoch = 0;
  if (RaceChecker* races = cluster.races()) {
    // Copies between which the thread has synchronised started with different knowledge.
    const bool same = !group.copies.empty() && !thread.synchronised && group.copies.back().where == where;
    epoch = same ? group.copies.back().epoch : races->epoch(thread.number);
    where.outer_call = same ? group.copies.back().where.outer_call : outer_call(thread, where.call);
    if (!same) {
      races->issue(group.race_operations.emplace_back(), thread.number, RaceChecker::Queue::thread,
                   Proxy::generic, "cp.async", cluster.site(where));
      thread.synchronised = false;
    }
  }
  Copy copy;
  copy.shared = static_cast<std::byte*>(shared);
  copy.global = static_cast<const std::byte*>(global);
  copy.bytes = bytes;
  copy.source_bytes = source_bytes;
  copy.race_operation =
      group.race_operations.empty() ? 0 : static_cast<uint32_t>(group.race_operations.size() - 1);
  copy.lane = thread.lane;
  copy.epoch = epoch;
  copy.where = where;
  group.copies.push_back(copy);
  if (constexpr uint32_t kChunk = 16; bytes < kChunk)
    cluster.unwritten_reads().note_narrow_copy(
        thread.block->ids.rank_in_cluster, static_cast<size_t>(copy.shared - thread.block->shared.generic()),
        bytes, where);

  note_global_access(thread, global, source_bytes, /*write=*/false, where);
  ++cluster.totals().async_copies;
  cluster.moved_tiles().note_copy(where, source_bytes > 0);
  count_copy(thread, copy);
  if (VirtualClock* clock = cluster.clock()) {
    group.lands_at = std::max(group.lands_at, clock->copy_async(thread.number, source_bytes));
  }
  // The hardware starts a copy when it is issued, not when it is committed.
  if (cluster.lands_now()) perform(cluster, group, group.copies.back());
  cluster.leave_if_failed();
}

void copy_commit(Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  std::unique_ptr<CopyGroup> group = close_group(thread, where);
  group->number = ++thread.committed_copy_groups;
  group->committed_at = where;
  if (const RaceChecker* races = thread.cluster.races()) group->commit_epoch = races->epoch(thread.number);
  if (!group->copies.empty()) {
    thread.last_copy_group = group->number;
    thread.last_copy_at = group->where;
  }
  thread.cluster.submit(std::move(group));
  thread.cluster.leave_if_failed();
}

void copy_wait(unsigned in_flight, const char* what, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  cluster.jitter(thread);
  const uint64_t needed =
      thread.committed_copy_groups > in_flight ? thread.committed_copy_groups - in_flight : 0;
  if (thread.landed_copy_groups < needed) {
    if (thread.lane == 0) ++cluster.totals().barrier_waits;
    cluster.park(thread, {WaitKind::copies, nullptr, needed, what, where});
  }
  thread.copy_groups_at_wait = thread.committed_copy_groups;
  thread.copy_groups_left = in_flight;
  thread.last_copy_wait_at = where;
  const bool has_open_copies = thread.open_copies && !thread.open_copies->copies.empty();
  thread.uncommitted_wait_at = has_open_copies ? where : Location{};
  if (RaceChecker* races = cluster.races()) {
    thread.last_copy_wait_epoch = races->begin_epoch(thread.number);
    thread.copy_waits.push_back({where, thread.last_copy_wait_epoch, thread.copy_groups_at_wait, in_flight});
    if (thread.copy_waits.size() > Thread::kCopyWaitsKept) thread.copy_waits.pop_front();
  }
  thread.waited_copy_groups = std::max(thread.waited_copy_groups, needed);
  while (!thread.landed_groups.empty() && thread.landed_groups.front().number <= needed) {
    const LandedGroup& group = thread.landed_groups.front();
    if (RaceChecker* races = cluster.races()) {
      for (const AsyncOperation& operation : group.race_operations) races->acquire(thread.number, operation);
    }
    if (VirtualClock* clock = cluster.clock()) clock->wait_until(thread.number, group.landed_at, what);
    thread.landed_groups.pop_front();
  }
  thread.synchronised = true;
}

const Block* CopyGroup::touched_block() const { return copies.empty() && !barrier ? nullptr : issuer->block; }

std::string CopyGroup::abandoned() const {
  if (!barrier || !copies.empty()) return PendingOperation::abandoned();
  const bool is_stage = barrier->name && std::string_view(barrier->name) == "pipeline.produced";
  return std::string("the block exits while an arrival of ") + (is_stage ? "producer_commit" : "cp.async") +
         " at " + name_of(*barrier) + " is pending: " +
         (is_stage ? "a stage was committed that nobody waited for" : "nobody waited for that phase");
}

void CopyGroup::show_early_readers(Cluster& cluster) {
  for (Copy& copy : copies) perform(cluster, *this, copy);
}

void CopyGroup::land(Cluster& cluster) {
  issuer->landing_copies = this;
  for (Copy& copy : copies) perform(cluster, *this, copy);
  issuer->landing_copies = nullptr;
  if (barrier) {
    arrive_for_operation(cluster, *barrier, *this);
    return;
  }
  issuer->landed_copy_groups = number;
  if (!copies.empty())
    issuer->landed_groups.push_back(
        {number, lands_at, std::move(race_operations), std::move(copies), committed_at, commit_epoch});
  if (issuer->wait.kind == WaitKind::copies && issuer->wait.argument <= number) cluster.wake(*issuer);
}

void copy_arrive(uint64_t* barrier, CopyArrival arrival, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Mbarrier& target = find_mbarrier(thread, barrier, where);
  if (arrival == CopyArrival::extra) ++target.pending;
  std::unique_ptr<CopyGroup> group = close_group(thread, where);
  group->barrier = &target;
  thread.cluster.submit(std::move(group));
  thread.cluster.leave_if_failed();
}

void Cluster::flush_copy_instructions(Warp& warp) {
  if (warp.copy_instructions.empty()) return;
  LaneAccess from[kWarpLanes], to[kWarpLanes];
  for (std::vector<Copy>& instruction : warp.copy_instructions) {
    // Lanes come in the order of the schedule; the banks serve groups of neighbours.
    std::sort(instruction.begin(), instruction.end(),
              [](const Copy& one, const Copy& other) { return one.lane < other.lane; });
    unsigned readers = 0, writers = 0;
    for (const Copy& copy : instruction) {
      if (copy.source_bytes) from[readers++] = {reinterpret_cast<uintptr_t>(copy.global), copy.source_bytes};
      to[writers++] = {static_cast<uint64_t>(copy.shared - warp.block->shared.generic()), copy.bytes};
    }
    if (readers) access_counter_.warp_access(Space::global, from, readers, /*write=*/false);
    access_counter_.warp_access(Space::shared, to, writers, /*write=*/true);
  }
  warp.copy_instructions.clear();
  for (Thread* lane : warp.lanes) {
    if (lane) lane->copies_since_convergence = 0;
  }
}

}  // namespace cpu_device
