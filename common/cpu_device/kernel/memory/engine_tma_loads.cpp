/// @file
/// TMA loads: one thread brings a box to shared memory, of its block or of several; an mbarrier of each
/// counts the bytes.
#include <algorithm>
#include <cstring>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_tma.hpp"
#include "common/cpu_device/kernel/memory/engine_remote.hpp"
#include "common/cpu_device/kernel/reports/loads.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {
namespace {

constexpr const char *kLoad = "TMA load", *kMulticast = "TMA multicast";

/// What one block will receive. `barrier` belongs to that block.
std::unique_ptr<TmaLoad> make_load(Thread& thread, const TmaBox& box, Mbarrier& barrier, uint32_t mask,
                                   Location where) {
  const Unobserved unobserved;
  Cluster& cluster = thread.cluster;
  auto load = std::make_unique<TmaLoad>();
  load->issuer = &thread;
  load->where = where;
  load->box = box;
  load->target = barrier.block;
  load->barrier = &barrier;
  load->phase = barrier.phase;
  load->mask = mask;
  if (!box.is_bulk) cluster.moved_tiles().note_load(box.map.base, box.coordinates[0], box.map.box[0]);
  cluster.moved_tiles().note_box(*load->target, thread, box, /*is_load=*/true);
  thread.last_loads.push_back({&barrier, box.shared_offset, box.bytes(), mask, where, load->box_rows()});
  if (thread.last_loads.size() > Thread::kLoadsKept) thread.last_loads.pop_front();
  // Within a block a barrier of its threads is enough: TMA counts bytes through the generic proxy, as threads
  // arrive (PTX ISA 9.3, "cp.async.bulk.tensor").
  if (cluster.blocks().size() > 1 && !barrier.fenced) {
    cluster.fail(thread,
                 std::string(load->what()) + ": no fence.mbarrier_init after the initialisation of " +
                     describe(barrier) + ", so the cluster may not see that it was initialised",
                 where);
  }
  if (RaceChecker* races = cluster.races()) {
    races->issue(load->race_operation, thread.number, RaceChecker::Queue::none, Proxy::async, load->what(),
                 cluster.site(where));
    races->annotate(load->race_operation, note_of(barrier));
  }
  return load;
}

/// All threads have arrived, so that no more bytes will be expected in this phase: what is too much would
/// also be written behind the place that it is meant for.
void check_not_more_than_expected(Cluster& cluster, Thread& thread, const TmaLoad& load, Location where) {
  const Mbarrier& barrier = *load.barrier;
  if (barrier.pending) return;
  int64_t left = barrier.missing_bytes;
  for (const auto& operation : cluster.in_flight()) {
    const auto* other = dynamic_cast<const CountedCopy*>(operation.get());
    if (other && other->barrier == &barrier && other->phase == barrier.phase) left -= other->bytes();
  }
  left = std::max<int64_t>(left, 0);
  if (left >= load.bytes()) return;
  const bool is_box = load.box.rows() > 1;
  if (const std::string slot = explain_slot_of_load(thread, load.box.shared_offset, barrier); !slot.empty())
    cluster.fail(thread,
                 print("%s: brings %lld bytes more than expected: ", load.what(),
                       static_cast<long long>(load.bytes() - left)) +
                     slot,
                 where);
  const std::string same = explain_same_place(loads_of_phase(barrier, barrier.phase, &thread));
  cluster.fail(thread,
               print("%s: brings %lld bytes more than expected: ", load.what(),
                     static_cast<long long>(load.bytes() - left)) +
                   (is_box ? print("a box of %u rows of %u bytes", load.box.rows(), load.box.row_bytes())
                           : print("%u bytes", load.box.row_bytes())) +
                   print(", where %lld are left of the %lld that are expected", static_cast<long long>(left),
                         static_cast<long long>(barrier.expected_bytes)) +
                   (same.empty() ? print(": the %s is too large, or too few bytes were expected at ",
                                         is_box ? "box" : "copy") +
                                       describe(barrier)
                                 : " at " + describe(barrier) + "\n  " + same),
               where);
}

}  // namespace

namespace {

void load_box(Thread& thread, const TmaBox& box, const uint64_t* barrier, Location where) {
  Cluster& cluster = thread.cluster;
  auto load = make_load(thread, box, find_mbarrier(thread, barrier, where), /*mask=*/0, where);
  check_not_more_than_expected(cluster, thread, *load, where);
  count_box(thread, box, /*load=*/true, where);
  if (VirtualClock* clock = cluster.clock()) {
    load->lands_at = clock->copy_async(thread.number, box.bytes_inside());
  }
  cluster.submit(std::move(load));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

void load_box_multicast(Thread& thread, const TmaBox& box, const uint64_t* barrier, uint32_t blocks,
                        Location where) {
  Cluster& cluster = thread.cluster;
  if (!blocks) cluster.fail(thread, "TMA multicast to no block: the mask is 0", where);
  std::vector<std::unique_ptr<TmaLoad>> loads;
  for (unsigned rank = 0; blocks >> rank; ++rank) {
    if (!(blocks >> rank & 1)) continue;
    Block& target = find_block(thread, rank, kMulticast, where);
    loads.push_back(
        make_load(thread, box, find_mbarrier(thread, target, barrier, kMulticast, where), blocks, where));
    forget_mapping(thread, target);
  }

  // The box is read once, whoever receives it.
  count_box(thread, box, /*load=*/true, where);
  for (const auto& load : loads) {
    if (load->target != thread.block) cluster.accesses().cluster_access(box.bytes());
  }
  count_copies_of_box(cluster, box, static_cast<unsigned>(loads.size()) - 1);
  if (VirtualClock* clock = cluster.clock()) {
    const double here = clock->copy_async(thread.number, box.bytes_inside());
    for (const auto& load : loads) {
      load->lands_at = load->target == thread.block ? here : here + clock->model().cluster_latency;
    }
  }
  for (auto& load : loads) cluster.submit(std::move(load));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

}  // namespace

void tma_load(void* shared, const void* map, int column, int row, uint64_t* barrier, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  const int coordinates[] = {column, row};
  tma_load(shared, map, coordinates, 2, {barrier, 0}, where);
}

void tma_load_multicast(void* shared, const void* map, int column, int row, const uint64_t* barrier,
                        uint32_t blocks, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  const int coordinates[] = {column, row};
  load_box_multicast(thread, make_box(thread, map, shared, coordinates, 2, kMulticast, where), barrier,
                     blocks, where);
}

void tma_load(void* shared, const void* map, const int* coordinates, unsigned dimensions, BulkArrival arrival,
              Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  const TmaBox box =
      make_box(thread, map, shared, coordinates, dimensions, arrival.blocks ? kMulticast : kLoad, where);
  arrival.blocks ? load_box_multicast(thread, box, arrival.barrier, arrival.blocks, where)
                 : load_box(thread, box, arrival.barrier, where);
}

void bulk_load(void* shared, const void* global, uint32_t bytes, BulkArrival arrival, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  const TmaBox box = make_bulk_box(thread, global, shared, bytes, where);
  arrival.blocks ? load_box_multicast(thread, box, arrival.barrier, arrival.blocks, where)
                 : load_box(thread, box, arrival.barrier, where);
}

void TmaLoad::land(Cluster& cluster) {
  Block& block = *target;
  check_not_over_mbarrier(cluster, *this, block, box.shared_offset, box.shared_bytes());
  if (cluster.failed()) return;
  if (is_too_late(cluster)) return;  // explains more than the race that follows from it
  std::byte line[kMaxBoxRowBytes];
  for (uint32_t r = 0; r < box.rows(); ++r) {
    const TmaBox::Piece piece = box.inside(r);
    if (piece.bytes < box.row_bytes()) std::memset(line, 0, box.row_bytes());
    if (piece.bytes) std::memcpy(line + piece.first_byte, piece.global, piece.bytes);
    for (uint32_t byte = 0; byte < box.row_bytes(); byte += kTmaChunkBytes) {
      block.shared.write_both_views(box.chunk_offset(r, byte), line + byte, kTmaChunkBytes);
    }
  }
  if (RaceChecker* races = cluster.races()) {
    races->access(race_operation, block.ids.rank_in_cluster, box.shared_offset, box.shared_bytes(),
                  /*write=*/true);
  }
  count_bytes_of(cluster, *this);
}

}  // namespace cpu_device
