/// @file
/// TMA stores: one thread sends a box from shared to global memory. The box is read when the copy runs, so
/// what was overwritten meanwhile is what is stored.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "common/cpu_device/base/float16.hpp"
#include "common/cpu_device/declarations/driver_api.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
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

namespace {

/// Lets the thread store a box, or add it to what is there.
void store_box(Thread& thread, const TmaBox& box, BulkReduction reduction, ElementType element,
               Location where) {
  Cluster& cluster = thread.cluster;
  auto store = std::make_unique<TmaStoreRead>();
  store->issuer = &thread;
  store->where = where;
  store->box = box;
  store->reduction = reduction;
  store->element = element;

  if (thread.store_groups.empty()) thread.store_groups.emplace_back();
  store->group = committed_groups(thread);
  TmaStoreGroup& group = thread.store_groups.back();
  ++group.reading;
  ++group.writing;
  group.where = where;
  cluster.moved_tiles().note_box(*thread.block, thread, box, /*is_load=*/false);
  cluster.moved_tiles().note_store(where, thread.warp->index);
  count_box(thread, box, /*load=*/false, where, reduction != BulkReduction::none);
  group.column = box.coordinates[0];
  group.row = box.is_bulk ? -1 : box.coordinates[1];
  if (VirtualClock* clock = cluster.clock()) {
    const StoreTime time = clock->store_async(thread.number, store->box.bytes_inside());
    group.read_at = std::max(group.read_at, time.read);
    group.written_at = std::max(group.written_at, time.written);
  }
  if (RaceChecker* races = cluster.races()) {
    races->issue(store->race_operation, thread.number, RaceChecker::Queue::none, Proxy::async, "TMA store",
                 cluster.site(where));
    races->remember_epochs(store->race_operation);
    group.race_operations.push_back(store->race_operation);
    thread.last_stores.push_back({box.shared_offset, box.shared_bytes()});
    if (thread.last_stores.size() > Thread::kLoadsKept) thread.last_stores.pop_front();
  }
  // The hardware may start a store when it is issued, not when it is committed.
  cluster.submit(std::move(store));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

/// Of the types that a tensor map has.
ElementType element_of(const TensorMap& map) {
  switch (static_cast<CUtensorMapDataType>(map.type)) {
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      return ElementType::s32;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
      return ElementType::u64;
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
      return ElementType::s64;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
      return ElementType::f16;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return ElementType::bf16;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
      return ElementType::f32;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return ElementType::f64;
    default:
      return ElementType::u32;
  }
}

template <class T>
T combine(BulkReduction reduction, T there, T value) {
  switch (reduction) {
    case BulkReduction::add:
      return static_cast<T>(there + value);
    case BulkReduction::min:
      return std::min(there, value);
    case BulkReduction::max:
      return std::max(there, value);
    default:
      break;
  }
  if constexpr (std::is_unsigned_v<T>) {
    switch (reduction) {
      case BulkReduction::increase:
        return there >= value ? 0 : there + 1;
      case BulkReduction::decrease:
        return there == 0 || there > value ? value : there - 1;
      case BulkReduction::bit_and:
        return there & value;
      case BulkReduction::bit_or:
        return there | value;
      case BulkReduction::bit_xor:
        return there ^ value;
      default:
        break;
    }
  }
  return value;
}

/// `Number` is what is computed with, `Bits` what lies in memory.
template <class Bits, class Load, class Store>
void reduce(BulkReduction reduction, std::byte* global, const std::byte* data, size_t bytes, const Load& load,
            const Store& store) {
  for (size_t i = 0; i < bytes; i += sizeof(Bits)) {
    Bits there, value;
    std::memcpy(&there, global + i, sizeof there);
    std::memcpy(&value, data + i, sizeof value);
    there = store(combine(reduction, load(there), load(value)));
    std::memcpy(global + i, &there, sizeof there);
  }
}

void reduce(BulkReduction reduction, ElementType element, std::byte* global, const std::byte* data,
            size_t bytes) {
  const auto same = [](auto value) { return value; };
  switch (element) {
    case ElementType::u32:
      return reduce<uint32_t>(reduction, global, data, bytes, same, same);
    case ElementType::s32:
      return reduce<int32_t>(reduction, global, data, bytes, same, same);
    case ElementType::u64:
      return reduce<uint64_t>(reduction, global, data, bytes, same, same);
    case ElementType::s64:
      return reduce<int64_t>(reduction, global, data, bytes, same, same);
    case ElementType::f16:
      return reduce<uint16_t>(reduction, global, data, bytes, float16_to_float, float_to_float16);
    case ElementType::bf16:
      return reduce<uint16_t>(reduction, global, data, bytes, bfloat16_to_float, float_to_bfloat16);
    case ElementType::f32:
      return reduce<float>(reduction, global, data, bytes, same, same);
    case ElementType::f64:
      return reduce<double>(reduction, global, data, bytes, same, same);
  }
}

}  // namespace

void tma_store(const void* map, const void* shared, int column, int row, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  const int coordinates[] = {column, row};
  tma_store(map, shared, coordinates, 2, BulkReduction::none, where);
}

void tma_store(const void* map, const void* shared, const int* coordinates, unsigned dimensions,
               BulkReduction reduction, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  const TmaBox box = make_box(thread, map, shared, coordinates, dimensions, "TMA store", where);
  store_box(thread, box, reduction, element_of(box.map), where);
}

void bulk_store(void* global, const void* shared, uint32_t bytes, BulkReduction reduction,
                ElementType element, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  store_box(thread, make_bulk_box(thread, global, shared, bytes, where), reduction, element, where);
}

const Block* TmaStoreRead::touched_block() const { return issuer->block; }

void TmaStoreRead::land(Cluster& cluster) {
  Block& block = *issuer->block;
  auto write = std::make_unique<TmaStoreWrite>();
  write->issuer = issuer;
  write->where = where;
  write->box = box;
  write->group = group;
  write->reduction = reduction;
  write->element = element;
  write->data.resize(box.bytes());
  const std::byte* memory = block.shared.read_async_view();
  for (uint32_t r = 0; r < box.rows(); ++r) {
    for (uint32_t byte = 0; byte < box.row_bytes(); byte += kTmaChunkBytes) {
      std::memcpy(&write->data[r * box.row_bytes() + byte], memory + box.chunk_offset(r, byte),
                  kTmaChunkBytes);
      cluster.unwritten_reads().note(block, box.chunk_offset(r, byte), memory, "TMA store", where);
      if (const size_t chunk = box.chunk_offset(r, byte) / kTmaChunkBytes;
          chunk < block.staged_by.size() && block.staged_by[chunk])
        cluster.moved_tiles().read_warps |= 1u << (block.staged_by[chunk] - 1);
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
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const TmaBox::Piece piece = box.inside(r);
    if (!piece.bytes) continue;
    const std::byte* const from = &data[r * box.row_bytes() + piece.first_byte];
    if (reduction == BulkReduction::none) {
      std::memcpy(piece.global, from, piece.bytes);
    } else {
      static std::mutex mutex;  // blocks on other OS threads may reduce to the same place
      const std::lock_guard<std::mutex> lock(mutex);
      reduce(reduction, element, piece.global, from, piece.bytes);
    }
  }
  --group_of(*issuer, group).writing;
  wake_if_done(cluster, *issuer);
}

void tma_store_commit(Location where) {
  Thread& thread = this_thread(where);
  if (thread.store_groups.empty()) thread.store_groups.emplace_back();
  thread.store_groups.back().committed_at = where;
  thread.store_groups.back().waits_before_commit = thread.store_waits;
  thread.last_store_commit = where;
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
  if (!only_read) thread.written_store_groups_known = std::max(thread.written_store_groups_known, end);
  thread.last_store_wait = {where, cluster.races() ? cluster.races()->epoch(thread.number) : 0};
  thread.store_groups_left = static_cast<unsigned>(committed - end);
  ++thread.store_waits;
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
    thread.cluster.fail(
        thread,
        "the thread exits with TMA stores that were never committed: none of its waits covers them, so what "
        "they still read may be overwritten, or be gone with the block",
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
