/// @file
/// TMA stores: one thread sends a box from shared to global memory. The box is read when the copy runs, so
/// what was overwritten meanwhile is what is stored.
#include <algorithm>
#include <cstring>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"
#include "common/cpu_device/kernel/engine_tma.hpp"

namespace cpu_device {
namespace {

TmaStoreGroup& group_of(Thread& thread, uint64_t number) {
  return thread.store_groups[number - thread.forgotten_store_groups];
}

uint64_t committed_groups(const Thread& thread) {
  return thread.forgotten_store_groups + (thread.store_groups.empty() ? 0 : thread.store_groups.size() - 1);
}

/// Have all groups before this number been read, or written?
bool all_done(Thread& thread, uint64_t end, bool only_read) {
  for (uint64_t number = thread.forgotten_store_groups; number < end; ++number) {
    const TmaStoreGroup& group = group_of(thread, number);
    if (group.reading || (!only_read && group.writing)) return false;
  }
  return true;
}

/// A thread waits in wait_group for groups before `end`.
uint64_t encode_wait(uint64_t end, bool only_read) { return end << 1 | only_read; }

void wake_if_done(Cluster& cluster, Thread& thread) {
  if (thread.wait.kind != WaitKind::stores) return;
  if (all_done(thread, thread.wait.argument >> 1, thread.wait.argument & 1)) cluster.wake(thread);
}

}  // namespace

void tma_store(const void* map, const void* shared, int column, int row, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  auto store = std::make_unique<TmaStoreRead>();
  store->issuer = &thread;
  store->where = where;
  store->box = make_box(thread, map, shared, column, row, "TMA store", where);

  if (thread.store_groups.empty()) thread.store_groups.emplace_back();
  store->group = committed_groups(thread);
  TmaStoreGroup& group = thread.store_groups.back();
  ++group.reading;
  ++group.writing;
  group.where = where;
  count_box(thread, store->box, /*load=*/false, where);
  if (VirtualClock* clock = cluster.clock()) {
    const StoreTime time = clock->store_async(thread.number, store->box.bytes_inside());
    group.read_at = std::max(group.read_at, time.read);
    group.written_at = std::max(group.written_at, time.written);
  }
  if (RaceChecker* races = cluster.races()) {
    races->issue(store->race_operation, thread.number, RaceChecker::Queue::none, Proxy::async, "TMA store",
                 cluster.site(where));
    group.race_operations.push_back(store->race_operation);
  }
  // The hardware may start a store when it is issued, not when it is committed.
  cluster.submit(std::move(store));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

const Block* TmaStoreRead::touched_block() const { return issuer->block; }

void TmaStoreRead::land(Cluster& cluster) {
  Block& block = *issuer->block;
  auto write = std::make_unique<TmaStoreWrite>();
  write->issuer = issuer;
  write->where = where;
  write->box = box;
  write->group = group;
  write->data.resize(box.bytes());
  const std::byte* memory = block.shared.read_async_view();
  for (uint32_t r = 0; r < box.map.box_rows; ++r) {
    for (uint32_t byte = 0; byte < box.row_bytes(); byte += kTmaChunkBytes) {
      std::memcpy(&write->data[r * box.row_bytes() + byte], memory + box.chunk_offset(r, byte),
                  kTmaChunkBytes);
      cluster.unwritten_reads().note(block, box.chunk_offset(r, byte), memory, "TMA store", where);
    }
  }
  if (RaceChecker* races = cluster.races()) {
    races->access(race_operation, block.ids.rank_in_cluster, box.shared_offset, box.shared_bytes(),
                  /*write=*/false);
  }
  --group_of(*issuer, group).reading;
  wake_if_done(cluster, *issuer);
  cluster.submit(std::move(write));
}

void TmaStoreWrite::land(Cluster& cluster) {
  for (uint32_t r = 0; r < box.map.box_rows; ++r) {
    const TmaBox::Piece piece = box.inside(r);
    if (piece.bytes) std::memcpy(piece.global, &data[r * box.row_bytes() + piece.first_byte], piece.bytes);
  }
  --group_of(*issuer, group).writing;
  wake_if_done(cluster, *issuer);
}

void tma_store_commit(Location where) {
  Thread& thread = this_thread(where);
  if (thread.store_groups.empty()) thread.store_groups.emplace_back();
  thread.store_groups.emplace_back();
}

void tma_store_wait(unsigned in_flight, bool only_read, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  cluster.jitter(thread);
  const char* what = only_read ? "cp.async.bulk.wait_group.read" : "cp.async.bulk.wait_group";
  const uint64_t committed = committed_groups(thread);
  const uint64_t end = committed > in_flight ? committed - in_flight : 0;
  if (!all_done(thread, end, only_read)) {
    ++cluster.totals().barrier_waits;
    cluster.park(thread, {WaitKind::stores, nullptr, encode_wait(end, only_read), what, where});
  }
  for (uint64_t number = thread.forgotten_store_groups; number < end; ++number) {
    const TmaStoreGroup& group = group_of(thread, number);
    if (RaceChecker* races = cluster.races()) {
      for (const AsyncOperation& operation : group.race_operations) races->acquire(thread.number, operation);
    }
    if (VirtualClock* clock = cluster.clock()) {
      clock->wait_until(thread.number, only_read ? group.read_at : group.written_at, what);
    }
  }
  thread.read_store_groups_known = std::max(thread.read_store_groups_known, end);
  while (thread.forgotten_store_groups < end && !thread.store_groups.front().writing) {
    thread.store_groups.pop_front();
    ++thread.forgotten_store_groups;
  }
  thread.synchronised = true;
}

namespace {

/// A store that began too early is named before what its thread has left out since.
void check_early_stores(Thread& thread) {
  RaceChecker* const races = thread.cluster.races();
  if (!races) return;
  for (const auto& operation : thread.cluster.in_flight()) {
    const auto* store = dynamic_cast<const TmaStoreRead*>(operation.get());
    if (store && store->issuer == &thread)
      races->check_early_read(store->race_operation, thread.block->ids.rank_in_cluster,
                              store->box.shared_offset, store->box.shared_bytes());
  }
  thread.cluster.leave_if_failed();
}

}  // namespace

void check_stores_at_exit(Thread& thread) {
  if (thread.store_groups.empty()) return;
  if (!thread.store_groups.back().race_operations.empty() || thread.store_groups.back().where.line) {
    check_early_stores(thread);
    thread.cluster.fail(thread, "the thread exits with TMA stores that were never committed",
                        thread.store_groups.back().where);
  }
  for (uint64_t number = thread.read_store_groups_known; number < committed_groups(thread); ++number) {
    const TmaStoreGroup& group = group_of(thread, number);
    if (!group.where.line) continue;  // an empty group
    check_early_stores(thread);
    thread.cluster.fail(thread,
                        "the thread exits with TMA stores that it never waited for: they may still read "
                        "shared memory when the block is gone",
                        group.where);
  }
}

}  // namespace cpu_device
