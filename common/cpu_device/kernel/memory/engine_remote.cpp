/// @file
/// What a block does in the shared memory of another block of its cluster: mapped addresses, arrivals at its
/// barriers, stores that count their bytes there.
#include "common/cpu_device/kernel/memory/engine_remote.hpp"

#include <cstring>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

constexpr const char *kStore = "store_async", *kMap = "map_shared";

}  // namespace

Block& find_block(Thread& thread, unsigned rank, const char* operation, Location where) {
  Cluster& cluster = thread.cluster;
  const size_t blocks = cluster.blocks().size();
  if (rank >= blocks) {
    cluster.fail(thread,
                 print("%s: there is no block %u in a cluster of %zu block%s", operation, rank, blocks,
                       blocks == 1 ? "" : "s"),
                 where);
  }
  Block& block = *cluster.blocks()[rank];
  if (!block.live) {
    cluster.fail(thread,
                 print("%s: block %u of the cluster has left while block %u still reaches into its shared "
                       "memory; ",
                       operation, rank, thread.block->ids.rank_in_cluster) +
                     explain_exit(block),
                 where);
  }
  return block;
}

void* map_shared(const void* pointer, unsigned rank, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Block& block = find_block(thread, rank, kMap, where);
  const uint32_t offset = shared_offset(thread, pointer, 0, kMap, where);
  if (&block != thread.block) {
    block.mappings.resize(thread.cluster.blocks().size());
    block.mappings[thread.block->ids.rank_in_cluster] = {&thread, where};
  }
  return block.shared.generic() + offset;
}

void forget_mapping(const Thread& thread, Block& other) {
  const unsigned rank = thread.block->ids.rank_in_cluster;
  if (rank < other.mappings.size()) other.mappings[rank] = {};
}

void report_access_to_block_that_left(unsigned block, bool write, const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  if (cluster.failed()) return;
  cluster.record_failure(current_thread,
                         print("%s the shared memory of block %u of the cluster, which has left: ",
                               write ? "a store to" : "a load from", block) +
                             explain_exit(*cluster.blocks()[block]) + "\n  at " +
                             describe_call_site(reinterpret_cast<uintptr_t>(return_address)),
                         {});
}

// --- arrivals ---------------------------------------------------------------------------------------------

void mbarrier_arrive_remote(const uint64_t* barrier, unsigned rank, ArrivalOrder order, const char* what,
                            Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Block& target = find_block(thread, rank, what, where);
  auto arrival = std::make_unique<RemoteArrival>();
  arrival->issuer = &thread;
  arrival->where = where;
  arrival->name = what;
  arrival->order = order;
  arrival->wgmma_in_flight = !thread.wgmma_not_waited_for.empty();
  arrival->barrier = &find_mbarrier(thread, target, barrier, what, where);
  forget_mapping(thread, target);
  note_arrival_in_flight(thread, *arrival->barrier, where);
  thread.synchronised = true;
  if (RaceChecker* races = cluster.races()) {
    arrival->epoch = races->epoch(thread.number);
    races->release_operations(thread.number, arrival->operations);
    if (order == ArrivalOrder::release) races->release(thread.number, arrival->released);
    // It touches the barrier: the block must not leave before it knows of that, from this thread or a wait.
    // It completes alone: whoever knows of it knows nothing of the thread's st.async.
    races->issue(arrival->race_operation, thread.number, RaceChecker::Queue::none, Proxy::generic, what,
                 cluster.site(where));
    races->access(arrival->race_operation, rank, arrival->barrier->offset, sizeof(uint64_t), /*write=*/false);
    races->acquire(thread.number, arrival->race_operation);
  }
  const bool is_own = &target == thread.block;
  if (VirtualClock* clock = cluster.clock()) {
    arrival->lands_at = clock->now(thread.number) + (is_own ? 0 : clock->model().cluster_latency);
  }
  if (is_own) {
    arrival->land(cluster);
  } else {
    cluster.submit(std::move(arrival));
  }
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

const Block* RemoteArrival::touched_block() const { return barrier->block; }

void RemoteArrival::land(Cluster& cluster) { arrive_from_afar(cluster, *this); }

// --- stores -----------------------------------------------------------------------------------------------

void store_async(const void* to, unsigned rank, const void* value, const uint64_t* barrier, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Block& target = find_block(thread, rank, kStore, where);
  auto store = std::make_unique<AsyncStore>();
  store->issuer = &thread;
  store->where = where;
  store->target = &target;
  store->offset = shared_offset(thread, to, kAsyncStoreBytes, kStore, where);
  if (store->offset % kAsyncStoreBytes) {
    cluster.fail(thread,
                 print("store_async: shared memory + 0x%x is not aligned to %u bytes", store->offset,
                       kAsyncStoreBytes),
                 where);
  }
  std::memcpy(store->value, value, kAsyncStoreBytes);
  store->barrier = &find_mbarrier(thread, target, barrier, kStore, where);
  store->phase = store->barrier->phase;
  forget_mapping(thread, target);
  ++cluster.totals().async_copies;
  const bool is_own = &target == thread.block;
  cluster.accesses().async_store(kAsyncStoreBytes);
  if (!is_own) cluster.accesses().cluster_access(kAsyncStoreBytes);
  if (VirtualClock* clock = cluster.clock()) {
    store->lands_at = clock->send_to_block(thread.number, kAsyncStoreBytes);
  }
  if (RaceChecker* races = cluster.races()) {
    const Unobserved unobserved;
    races->issue(store->race_operation, thread.number, RaceChecker::Queue::thread, Proxy::generic, kStore,
                 cluster.site(where));
    races->annotate(store->race_operation, note_of(*store->barrier));
  }
  cluster.submit(std::move(store));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

bool AsyncStore::needs_cluster_scope() const { return issuer->block != target; }

void AsyncStore::land(Cluster& cluster) {
  check_not_over_mbarrier(cluster, *this, *target, offset, kAsyncStoreBytes);
  if (cluster.failed()) return;
  std::memcpy(target->shared.generic() + offset, value, kAsyncStoreBytes);
  if (RaceChecker* races = cluster.races()) {
    races->access(race_operation, target->ids.rank_in_cluster, offset, kAsyncStoreBytes, /*write=*/true);
  }
  count_bytes_of(cluster, *this);
}

}  // namespace cpu_device
