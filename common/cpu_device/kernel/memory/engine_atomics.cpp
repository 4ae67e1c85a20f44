/// @file
/// Atomic operations and fences: what they order between clusters. (The operation itself is the host's.)
#include <utility>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/reports/launch_shape.hpp"

namespace cpu_device {
namespace {

GridOrder::Who who(const Thread& thread) { return {thread.number, thread.ids.rank, thread.ids.block->index}; }

/// Calls `body(races, thread)` where somebody checks; the hooks see nothing of it.
template <class Body>
void ask_races(Location where, const Body& body) {
  Thread& thread = this_thread(where);
  RaceChecker* const races = thread.cluster.races();
  if (!races) return;
  const Unobserved unobserved;
  body(*races, thread.number);
}

/// Calls `body(grid order, races, who runs)` where somebody checks; the hooks see nothing of it.
template <class Body>
void ask_grid_order(Location where, const Body& body) {
  Thread& thread = this_thread(where);
  GridOrder* const order = thread.cluster.grid_order();
  if (!order) return;
  const ObservedThread* const running = std::exchange(observers().running, nullptr);
  body(*order, *thread.cluster.races(), who(thread));
  observers().running = running;
}

}  // namespace

void atomic_begins(const void* object, bool releases, Location where, bool is_of_device) {
  if (GlobalAccesses* accesses = this_thread(where).cluster.global_accesses()) {
    accesses->has_atomics = true;
    const bool is_word = reinterpret_cast<uintptr_t>(object) % alignof(uint32_t) == 0;
    if (is_word) accesses->note_read(object, sizeof(uint32_t), "an atomic operation", where);
  }
  ask_races(where,
            [&](RaceChecker& races, unsigned thread) { races.atomic_changes(thread, object, releases); });
  ask_grid_order(where, [&](GridOrder& order, RaceChecker& races, const GridOrder::Who& thread) {
    order.before_atomic(races, thread, {object, where, is_of_device}, releases);
  });
}

void atomic_ended(const void* object, bool acquires, Location where, bool is_of_device) {
  ask_races(where,
            [&](RaceChecker& races, unsigned thread) { races.atomic_looks(thread, object, acquires); });
  ask_grid_order(where, [&](GridOrder& order, RaceChecker& races, const GridOrder::Who& thread) {
    order.after_atomic(races, thread, {object, where, is_of_device}, acquires);
  });
}

void atomic_looked(const void* object, bool changed, const char* what, Location where,
                   const long long* found) {
  constexpr unsigned kPatience = 64;
  Thread& thread = this_thread(where);
  if (changed) thread.cluster.count_progress();
  if (changed || object != thread.looks_at) thread.looks = 0;
  thread.looks_at = object;
  if (++thread.looks <= kPatience) return;
  thread.looks = 0;
  poll(what, where, found);
}

void thread_fence_block(Location where) {
  this_thread(where).observed.is_behind_fence = true;
  ask_races(where, [](RaceChecker& races, unsigned thread) { races.fence(thread); });
}

void thread_fence(Location where, bool is_sequentially_consistent) {
  thread_fence_block(where);
  ask_grid_order(where, [&](GridOrder& order, RaceChecker& races, const GridOrder::Who& thread) {
    order.fence(races, thread, where, is_sequentially_consistent);
  });
}

namespace {

void check_order_in_grid(Thread& thread, const void* address, size_t bytes, bool write, AccessKind kind,
                         const GridOrder::Place& place) {
  Cluster& cluster = thread.cluster;
  if (!cluster.grid_order() || cluster.failed() || bytes == 0) return;
  const std::string race = cluster.grid_order()->access(
      *cluster.races(), who(thread), static_cast<const std::byte*>(address), bytes, write, kind, place);
  if (!race.empty()) cluster.record_race(&thread, write ? with_flat_block(cluster.kernel(), race) : race);
}

}  // namespace

void check_order_in_grid(const void* address, size_t bytes, bool write, AccessKind kind,
                         const void* return_address) {
  check_order_in_grid(*current_thread, address, bytes, write, kind, {return_address, {}, nullptr});
}

void note_atomic(const void* object, size_t bytes, bool changes, const char* what, Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  RaceChecker* const races = cluster.races();
  if (!races || is_local(object)) return;
  {
    const Unobserved unobserved;
    const SharedWindows& windows = observers().shared;
    const auto* const at = static_cast<const std::byte*>(object);
    unsigned block = 0;
    while (block < windows.size() &&
           (at < windows[block].begin || at >= windows[block].begin + windows[block].bytes))
      ++block;
    if (block < windows.size())
      races->access(thread.number, block, static_cast<size_t>(at - windows[block].begin), bytes, changes,
                    what, cluster.site(where), AccessKind::atomic);
    else
      check_order_in_grid(thread, object, bytes, changes, AccessKind::atomic, {nullptr, where, what});
  }
  cluster.leave_if_failed();
}

void check_copy_in_grid(Thread& thread, const void* address, size_t bytes, bool write, Location where,
                        const TmaBox* box) {
  GridOrder::Place place{nullptr, where, nullptr};
  if (box) {
    place.is_box = true;
    place.column = box->coordinates[0];
    place.row = box->coordinates[1];
    place.columns = static_cast<int>(box->map.box[0]);
    place.rows = static_cast<int>(box->map.box[1]);
    place.group =
        thread.forgotten_store_groups + (thread.store_groups.empty() ? 0 : thread.store_groups.size() - 1);
    place.waited_for = thread.written_store_groups_known;
    if (write && !thread.store_groups.empty()) {
      place.column_before = thread.store_groups.back().column;
      place.row_before = thread.store_groups.back().row;
    }
  }
  check_order_in_grid(thread, address, bytes, write, AccessKind::plain, place);
}

}  // namespace cpu_device
