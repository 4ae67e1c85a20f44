/// @file
/// mbarriers: barriers in shared memory that count arrivals and bytes, phase by phase.
#include "common/cpu_device/kernel/engine_mbarriers.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "common/cpu_device/kernel/engine_async_copies.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/memory/engine_remote.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {
namespace {

/// The eight bytes of an initialised object: this tag and an index into Block::mbarriers.
constexpr uint64_t kTag = 0x7ba55e11;
constexpr uint64_t kNoTag = ~uint64_t{0};
constexpr uint32_t kMaxBytes = (1u << 20) - 1;  ///< that a phase can expect

void complete_if_all_arrived(Cluster& cluster, Mbarrier& barrier) {
  cluster.count_progress();
  if (barrier.pending || barrier.missing_bytes) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.last_expected_bytes = std::exchange(barrier.expected_bytes, 0);
  barrier.earlier_arrivals.swap(barrier.last_arrivals);
  barrier.last_arrivals.swap(barrier.arrivals);
  barrier.arrivals.clear();
  barrier.completed = barrier.released;
  barrier.released.clear();
  barrier.completed_afar = barrier.released_afar;
  barrier.released_afar.clear();
  barrier.completed_at = barrier.latest_arrival;
  for (Thread* thread : barrier.waiting) cluster.wake(*thread);
  barrier.waiting.clear();
  barrier.waiting_warps = 0;
}

bool phase_ended(const Mbarrier& barrier, uint32_t parity) { return (barrier.phase & 1) != (parity & 1); }

/// Whoever uses a barrier must know that it was initialised: for the race checker, uses read the object.
void observe_access(Thread& thread, uint32_t offset, bool write, const char* what, Location where) {
  if (RaceChecker* races = thread.cluster.races()) {
    races->access(thread.number, thread.block->ids.rank_in_cluster, offset, sizeof(uint64_t), write, what,
                  thread.cluster.site(where));
    thread.cluster.leave_if_failed();
  }
}

void note_arrival(Mbarrier& barrier, const Mbarrier::Arrival& arrival) {
  barrier.arrivals.push_back(arrival);
  const unsigned number = arrival.thread->number;
  if (barrier.times_arrived.size() <= number) barrier.times_arrived.resize(number + 1);
  ++barrier.times_arrived[number];
}

bool is_same_ring(const Mbarrier& one, const Mbarrier& other) {
  if (*one.end)
    return one.initialised_at == other.initialised_at && !std::strcmp(one.end, other.end) &&
           one.offset - one.slot * sizeof(uint64_t) == other.offset - other.slot * sizeof(uint64_t);
  const std::string a = name_of(one), b = name_of(other);
  return a.rfind('[') != a.npos && a.compare(0, a.rfind('['), b, 0, b.rfind('[')) == 0;
}

/// Does the thread come to each phase of this end of the slot, and to all slots in their order? Then its wait
/// is right, even if others have gone on: a count that is too small, or a release that is too early, lets
/// them.
bool is_in_turn(const Thread& thread, const Mbarrier& barrier, const Mbarrier& full) {
  const auto waits_at = [&](const Mbarrier& one) {
    return one.waits.empty() ? 0 : one.waits[thread.ids.rank];
  };
  const uint64_t waits = waits_at(barrier);
  const uint64_t seen = barrier.phases_seen.empty() ? 0 : barrier.phases_seen[thread.ids.rank];
  if (!barrier.is_full) {
    const uint64_t fills = has_ever_arrived(full, thread) ? full.times_arrived[thread.number] : 0;
    if (waits == barrier.phase && fills <= barrier.phase) return true;  // parity 1 passes on the first lap
    return seen < barrier.phase && fills == barrier.phase;
  }
  if (seen >= barrier.phase || waits + 1 != barrier.phase) return false;
  const auto& all = barrier.block->mbarriers;
  return std::all_of(all.begin(), all.end(), [&](const auto& one) {
    return one.get() == &barrier || !is_same_ring(barrier, *one) ||
           waits_at(*one) == waits + (one->offset < barrier.offset);
  });
}

/// Of a slot that a block fills and empties itself: who reads it must find it filled once more often than
/// emptied, and who fills it, emptied as often as filled.
/// @return whether this is not so, and the wait may be wrong
bool check_early(const Thread& thread, Mbarrier& barrier, Location where) {
  const Mbarrier* const other = other_end(barrier);
  if (!other) return false;
  const Mbarrier& full = barrier.is_full ? barrier : *other;
  const Mbarrier& empty = barrier.is_full ? *other : barrier;
  if (barrier.is_full ? full.phase > empty.phase : empty.phase >= full.phase) return false;
  // Peers that fill each other's slots wait for an "empty" that speaks of another block's.
  const auto& releases = empty.phase ? empty.last_arrivals : empty.arrivals;
  const bool is_own = std::any_of(releases.begin(), releases.end(), [&](const auto& arrival) {
    return arrival.thread->block == barrier.block;
  });
  if (!is_own && barrier.block->ids.cluster_dim.count() > 1) return false;
  if (is_in_turn(thread, barrier, full)) {
    // Rather one of its own warpgroup, which may have released for it.
    auto release = releases.rend();
    for (const bool is_own_group : {true, false})
      if (release == releases.rend())
        release = std::find_if(releases.rbegin(), releases.rend(), [&](const auto& arrival) {
          const bool same_group =
              arrival.thread->block == thread.block &&
              arrival.thread->ids.rank / kWarpgroupThreads == thread.ids.rank / kWarpgroupThreads;
          return arrival.thread != &thread && (same_group || !is_own_group);
        });
    if (barrier.is_full && !barrier.late_look.thread && release != releases.rend())
      barrier.late_look = {&thread, where, release->thread, release->where};
    return false;
  }
  if (barrier.early_wait.thread) return true;
  barrier.early_wait = {&thread, where, static_cast<uint32_t>(barrier.phase + 1) % 2, full.phase,
                        empty.phase};
  return true;
}

uint32_t first_of_ring(const Mbarrier& barrier) {
  return barrier.offset - static_cast<uint32_t>(barrier.slot) * sizeof(uint64_t);
}

Thread::RingPlace* place_in_ring(Thread& thread, const Mbarrier& barrier) {
  for (Thread::RingPlace& place : thread.places_in_rings)
    if (place.first_barrier == first_of_ring(barrier)) return &place;
  return nullptr;
}

/// The thread is about to wait. Does it go on from where it was, or begin again?
void note_place_in_ring(Thread& thread, const Mbarrier& barrier, uint32_t parity, Location where) {
  if (!*barrier.end) return;  // of no pipeline
  Thread::RingPlace* const place = place_in_ring(thread, barrier);
  if (!place) {
    const Unobserved unobserved;
    const auto& all = barrier.block->mbarriers;
    const auto slots = std::count_if(all.begin(), all.end(), [&](const auto& one) {
      return one->initialised_at == barrier.initialised_at && !std::strcmp(one->end, barrier.end) &&
             first_of_ring(*one) == first_of_ring(barrier);
    });
    Thread::RingPlace& fresh = thread.places_in_rings.emplace_back();
    fresh.first_barrier = first_of_ring(barrier);
    fresh.slots = static_cast<int>(slots);
    fresh.first_slot = fresh.slot = barrier.slot;
    fresh.first_parity = fresh.parity = parity;
    return;
  }
  const bool wraps = place->slot + 1 == place->slots;
  const bool goes_on = barrier.slot == (wraps ? 0 : place->slot + 1) && parity == (place->parity ^ wraps);
  const bool is_same = barrier.slot == place->slot && parity == place->parity;
  const bool is_first = barrier.slot == place->first_slot && parity == place->first_parity;
  place->has_jumped |= !goes_on && !is_first && !is_same;
  if (!goes_on && is_first && (!is_same || place->slots == 1) && !place->restarted) {
    place->restarted = &barrier;
    place->restarted_at = where;
    place->slot_before = place->slot;
  }
  place->slot = barrier.slot;
  place->parity = parity;
}

/// The thread has seen that a phase ended.
void observe(Thread& thread, Mbarrier& barrier, bool of_cluster, const char* what, Location where) {
  const Unobserved unobserved;
  Cluster& cluster = thread.cluster;
  thread.synchronised = true;
  bool is_wrong = check_early(thread, barrier, where);
  if (!barrier.phase && !barrier.early_pass.thread) barrier.early_pass = {&thread, where, 0};
  thread.last_seen = {&barrier, barrier.phase, 0, where, {}};
  ++thread.mbarrier_waits;
  if (barrier.phases_seen.empty()) {
    barrier.phases_seen.resize(thread.block->ids.threads);
    barrier.phases_passed.resize(thread.block->ids.threads);
    barrier.waits.resize(thread.block->ids.threads);
  }
  ++barrier.waits[thread.ids.rank];
  const uint64_t seen = barrier.phases_seen[thread.ids.rank];
  if (seen && barrier.phase == seen) {
    barrier.repeated_wait = {&thread, where, seen - 1};
    is_wrong = true;
  }
  if (Thread::RingPlace* const place = place_in_ring(thread, barrier); place && place->restarted)
    place->is_wrong |= is_wrong || (place->restarted == &barrier && barrier.phase == seen);
  if (barrier.phase > seen + 1) barrier.phases_passed[thread.ids.rank] += barrier.phase - seen - 1;
  barrier.phases_seen[thread.ids.rank] = barrier.phase;
  if (std::exchange(barrier.last_phase_passed, barrier.phase) != barrier.phase)
    cluster.note_passed(*thread.block, what, where);
  if (RaceChecker* races = cluster.races()) {
    races->acquire(thread.number, barrier.completed);
    thread.last_seen.epoch = races->epoch(thread.number);
    if (!barrier.last_waits.empty())
      if (const Mbarrier::Wait& before = barrier.last_waits[thread.ids.rank]; before.phase == barrier.phase)
        thread.last_seen.repeats = before.where;
    thread.seen_before.push_back(thread.last_seen);
    if (thread.seen_before.size() > Thread::kSeenKept) thread.seen_before.pop_front();
    if (of_cluster) races->acquire(thread.number, barrier.completed_afar);
    if (barrier.last_waits.empty()) barrier.last_waits.resize(thread.block->ids.threads);
    barrier.last_waits[thread.ids.rank] = {barrier.phase, races->epoch(thread.number), of_cluster, what,
                                           where};
  }
  if (VirtualClock* clock = cluster.clock()) {
    clock->wait_until(thread.number, barrier.completed_at,
                      clock->keeps_trace() ? name_of(barrier) : std::string());
  }
}

/// Null if there is none at this place.
Mbarrier* mbarrier_at(Block& block, uint32_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, block.shared.generic() + offset, sizeof word);
  if (word >> 32 != kTag || static_cast<uint32_t>(word) >= block.mbarriers.size()) return nullptr;
  return block.mbarriers[static_cast<uint32_t>(word)].get();
}

/// ", or was overwritten", and by whom, as far as that is known.
std::string never_initialised(Cluster& cluster, const Block& block, uint32_t offset) {
  std::string text = " was never initialised, or was overwritten";
  if (const RaceChecker* races = cluster.races()) {
    const std::string last = races->describe_last_write(block.ids.rank_in_cluster, offset);
    if (!last.empty()) text += " (the last to write there: " + last + ")";
  }
  return text;
}

}  // namespace

Mbarrier& find_mbarrier(Thread& thread, const uint64_t* object, Location where) {
  const uint32_t offset = shared_offset(thread, object, sizeof(uint64_t), "mbarrier", where);
  Mbarrier* barrier = mbarrier_at(*thread.block, offset);
  if (!barrier) {
    thread.cluster.fail(thread,
                        print("the mbarrier at shared memory + 0x%x", offset) +
                            never_initialised(thread.cluster, *thread.block, offset),
                        where);
  }
  observe_access(thread, offset, /*write=*/false, "mbarrier", where);
  return *barrier;
}

Mbarrier& find_mbarrier(Thread& thread, Block& block, const uint64_t* object, const char* operation,
                        Location where) {
  Cluster& cluster = thread.cluster;
  const uint32_t offset = shared_offset(thread, object, sizeof(uint64_t), "mbarrier", where);
  Mbarrier* barrier = mbarrier_at(block, offset);
  if (!barrier) {
    cluster.fail(thread,
                 print("%s: the mbarrier at shared memory + 0x%x of ", operation, offset) + describe(block) +
                     never_initialised(cluster, block, offset) +
                     "; a cluster_sync must come between its "
                     "initialisation and its use by other blocks",
                 where);
  }
  if (RaceChecker* races = cluster.races()) {
    races->rely_on(thread.number, block.ids.rank_in_cluster, offset, sizeof(uint64_t), operation,
                   cluster.site(where));
    cluster.leave_if_failed();
  }
  return *barrier;
}

void mbarrier_init(uint64_t* object, uint32_t count, Location where, const char* end, int slot) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Block& block = *thread.block;
  const uint32_t offset = shared_offset(thread, object, sizeof(uint64_t), "mbarrier.init", where);
  if (offset % 8) thread.cluster.fail(thread, "mbarrier.init of a misaligned address", where);
  if (!count) thread.cluster.fail(thread, "mbarrier.init with a count of 0", where);
  auto barrier = std::make_unique<Mbarrier>();
  barrier->block = &block;
  barrier->offset = offset;
  barrier->expected = barrier->pending = count;
  barrier->initialised_at = where;
  barrier->end = end;
  barrier->slot = slot;
  barrier->initialised_by = &thread;
  const uint64_t word = kTag << 32 | block.mbarriers.size();
  std::memcpy(block.shared.generic() + offset, &word, sizeof word);
  block.mbarriers.push_back(std::move(barrier));
  observe_access(thread, offset, /*write=*/true, "mbarrier.init", where);
}

void fence_mbarrier_init(Location where) { publish_initialised_mbarriers(this_thread(where)); }

void publish_initialised_mbarriers(const Thread& thread) {
  for (auto& barrier : thread.block->mbarriers) {
    if (barrier->initialised_by == &thread) barrier->fenced = true;
  }
}

void mbarrier_invalidate(uint64_t* object, Location where) {
  find_mbarrier(this_thread(where), object, where);
  std::memcpy(object, &kNoTag, sizeof kNoTag);
}

void mbarrier_name(uint64_t* object, const char* name, int index, Location where) {
  Mbarrier& barrier = find_mbarrier(this_thread(where), object, where);
  barrier.name = name;
  barrier.name_index = index;
  for (auto& any : barrier.block->mbarriers) any->noted_among = 0;
}

const std::string& note_of(Mbarrier& barrier) {
  const size_t all = barrier.block->mbarriers.size();
  if (barrier.noted_among != all) {
    barrier.note = " for " + name_of(barrier);
    barrier.noted_among = all;
  }
  return barrier.note;
}

const Mbarrier* other_end(const Mbarrier& barrier) {
  const size_t all = barrier.block->mbarriers.size();
  if (barrier.partnered_among == all) return barrier.partner;
  barrier.partnered_among = all;
  barrier.partner = nullptr;
  if (*barrier.end) {
    barrier.is_full = std::strcmp(barrier.end, "full") == 0;
    // Several pipelines may be initialised by one line: "empty" is initialised next after "full".
    bool is_behind = false;
    for (const auto& other : barrier.block->mbarriers) {
      is_behind |= other.get() == &barrier;
      if (other->slot != barrier.slot || !*other->end || !(other->initialised_at == barrier.initialised_at) ||
          std::strcmp(other->end, barrier.end) == 0)
        continue;
      if (!barrier.partner || is_behind == barrier.is_full) barrier.partner = other.get();
      if (is_behind) break;
    }
    return barrier.partner;
  }
  // Barriers that belong to no Pipeline: by the names that the source gives them.
  const std::string name = name_of(barrier);
  for (const bool is_full : {true, false}) {
    const std::string word = is_full ? "full" : "empty";
    const size_t at = name.rfind(word);
    if (at == name.npos) continue;
    const std::string wanted =
        name.substr(0, at) + (is_full ? "empty" : "full") + name.substr(at + word.size());
    barrier.is_full = is_full;
    for (const auto& other : barrier.block->mbarriers)
      if (!*other->end && name_of(*other) == wanted) barrier.partner = other.get();
  }
  return barrier.partner;
}

bool has_ever_arrived(const Mbarrier& barrier, const Thread& thread) {
  return thread.number < barrier.times_arrived.size() && barrier.times_arrived[thread.number] > 0;
}

void check_loop_ends(Thread& thread, Location where) {
  constexpr uint32_t kPassesOfARightLoop = 1 << 16;  // for which the time is not looked at
  constexpr double kLongestLoop = 2;
  if (++thread.passes < kPassesOfARightLoop) return;
  const auto now = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  if (thread.passes == kPassesOfARightLoop) {
    thread.passes_at = where;
    thread.passes_there = 0;
    thread.passes_since = now();
  }
  if (thread.passes_at == where) ++thread.passes_there;
  if (thread.passes % 4096 || now() - thread.passes_since < kLongestLoop * thread.cluster.os_threads())
    return;
  thread.cluster.fail(
      thread,
      print("the thread runs for ever: it passed %s %u times in %.0f s, and had never to wait there: "
            "does its loop end, and its slot and parity move on?",
            own_place(thread.passes_at).c_str(), thread.passes_there, kLongestLoop),
      where);
}

uint64_t mbarrier_arrive(uint64_t* object, uint32_t count, uint32_t expect_bytes, const char* what,
                         Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Mbarrier& barrier = find_mbarrier(thread, object, where);
  check_loop_ends(thread, where);
  if (barrier.pending < count) {
    const std::string pipeline = explain_wrong_pipeline(barrier, &thread, where);
    cluster.fail(thread,
                 std::string(what) + ": more arrivals than expected at " + describe(barrier) +
                     (pipeline.empty() ? explain_repeated_wait(*barrier.block) +
                                             explain_arrival_too_many(thread, barrier, what, where)
                                       : "\n  " + pipeline + explain_open_phase(barrier)),
                 where);
  }
  if (expect_bytes > kMaxBytes) {
    cluster.fail(
        thread, print("%s: a barrier counts at most %u bytes, not %u", what, kMaxBytes, expect_bytes), where);
  }
  const uint64_t phase = barrier.phase;
  barrier.pending -= count;
  barrier.missing_bytes += expect_bytes;
  barrier.expected_bytes += expect_bytes;
  note_arrival(barrier, {what, &thread, where, /*of_operation=*/false, thread.mbarrier_waits});
  if (RaceChecker* races = cluster.races()) barrier.arrivals.back().epoch = races->epoch(thread.number);
  barrier.arrivals.back().wgmma_in_flight = !thread.wgmma_not_waited_for.empty();
  note_arrival_in_flight(thread, barrier, where);
  thread.synchronised = true;
  if (RaceChecker* races = cluster.races()) races->release(thread.number, barrier.released);
  if (VirtualClock* clock = cluster.clock()) {
    barrier.latest_arrival = std::max(barrier.latest_arrival, clock->now(thread.number));
  }
  complete_if_all_arrived(cluster, barrier);
  cluster.jitter(thread);
  return phase;
}

void mbarrier_expect_bytes(uint64_t* object, uint32_t bytes, Location where) {
  Mbarrier& barrier = find_mbarrier(this_thread(where), object, where);
  barrier.missing_bytes += bytes;
  barrier.expected_bytes += bytes;
}

void mbarrier_arrive_and_drop(uint64_t* object, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Mbarrier& barrier = find_mbarrier(this_thread(where), object, where);
  if (barrier.expected) --barrier.expected;
  mbarrier_arrive(object, 1, 0, "arrive_and_drop", where);
}

void arrive_for_operation(Cluster& cluster, Mbarrier& barrier, const CopyGroup& group) {
  if (!barrier.pending) {
    cluster.record_failure(
        group.issuer,
        "cp.async: more arrivals than expected at " + describe(barrier) + explain_open_phase(barrier),
        group.where);
    return;
  }
  if (RaceChecker* races = cluster.races()) {
    for (const AsyncOperation& operation : group.race_operations)
      races->complete(operation, barrier.released);
  }
  barrier.latest_arrival = std::max(barrier.latest_arrival, group.lands_at);
  --barrier.pending;
  note_arrival(barrier, {"cp.async done", group.issuer, group.where, /*of_operation=*/true});
  complete_if_all_arrived(cluster, barrier);
}

void arrive_from_afar(Cluster& cluster, const RemoteArrival& arrival) {
  Mbarrier& barrier = *arrival.barrier;
  if (!barrier.pending) {
    cluster.record_failure(arrival.issuer,
                           std::string(arrival.what()) + ": more arrivals than expected at " +
                               describe(barrier) + explain_open_phase(barrier),
                           arrival.where);
    return;
  }
  if (RaceChecker* races = cluster.races()) {
    const bool is_afar = arrival.issuer->block != barrier.block;
    races->pass_on(arrival.operations, barrier.released);
    races->pass_on(arrival.released, is_afar ? barrier.released_afar : barrier.released);
    races->complete(arrival.race_operation, barrier.released);
  }
  barrier.latest_arrival = std::max(barrier.latest_arrival, arrival.lands_at);
  --barrier.pending;
  note_arrival(barrier, {arrival.what(), arrival.issuer, arrival.where, /*of_operation=*/true,
                         /*waits_before=*/0, arrival.order, arrival.epoch});
  barrier.arrivals.back().wgmma_in_flight = arrival.wgmma_in_flight;
  complete_if_all_arrived(cluster, barrier);
}

namespace {

/// Why no wait of the threads that have left was for this copy's bytes; empty if that is not plain.
std::string explain_no_wait(const CountedCopy& copy) {
  const Mbarrier& barrier = *copy.barrier;
  const std::string steps = explain_fill_too_many(copy);
  if (barrier.phases_seen.empty())
    return steps.empty() ? "no thread has waited at " + describe(barrier) : steps;
  const bool is_open = barrier.phase == copy.phase;
  if (!is_open && barrier.phase != copy.phase + 1) return steps;
  int64_t started = 0;
  for (const Mbarrier::Arrival& arrival : is_open ? barrier.arrivals : barrier.last_arrivals)
    started += arrival.bytes;
  for (const auto& operation : copy.issuer->cluster.in_flight()) {
    const auto* const other = dynamic_cast<const CountedCopy*>(operation.get());
    if (other && other->barrier == copy.barrier && other->phase == copy.phase) started += other->bytes();
  }
  const int64_t expected = is_open ? barrier.expected_bytes : barrier.last_expected_bytes;
  if (expected >= started) return steps;
  return print("phase %llu of %s expects %lld bytes, and copies of %lld bytes were started",
               static_cast<unsigned long long>(copy.phase), describe(barrier).c_str(),
               static_cast<long long>(expected), static_cast<long long>(started));
}

}  // namespace

std::string CountedCopy::abandoned() const {
  const std::string reason = explain_no_wait(*this);
  return PendingOperation::abandoned() + (reason.empty() ? "" : "\n  " + reason);
}

std::string CountedCopy::missing() const {
  const std::string reason = explain_no_wait(*this);
  return reason.empty() ? "it did not wait for the bytes at " + describe(*barrier) : reason;
}

bool CountedCopy::is_too_late(Cluster& cluster) const {
  if (barrier->phase == phase) return false;
  const Thread* sender = issuer;
  Location blamed = where;
  std::string text = explain_wrong_mask(cluster, *this, sender, blamed);
  if (text.empty()) text = explain_bytes_too_late(cluster, *this);
  cluster.record_failure(sender, std::string(what()) + text, blamed);
  return true;
}

void count_bytes_of(Cluster& cluster, const CountedCopy& copy) {
  Mbarrier& barrier = *copy.barrier;
  if (copy.is_too_late(cluster)) return;
  if (RaceChecker* races = cluster.races()) {
    races->complete(copy.race_operation,
                    copy.needs_cluster_scope() ? barrier.released_afar : barrier.released);
  }
  barrier.latest_arrival = std::max(barrier.latest_arrival, copy.lands_at);
  barrier.missing_bytes -= copy.bytes();
  barrier.has_had_bytes = true;
  barrier.arrivals.push_back({copy.arrival(), copy.issuer, copy.where, /*of_operation=*/true});
  barrier.arrivals.back().bytes = copy.bytes();
  barrier.arrivals.back().box_rows = copy.box_rows();
  barrier.arrivals.back().multicast_mask = copy.multicast_mask();
  barrier.arrivals.back().needs_cluster_scope = copy.needs_cluster_scope();
  complete_if_all_arrived(cluster, barrier);
}

void check_not_over_mbarrier(Cluster& cluster, const PendingOperation& copy, Block& block, size_t offset,
                             size_t bytes) {
  for (const auto& barrier : block.mbarriers) {
    if (barrier->offset >= offset + bytes || barrier->offset + sizeof(uint64_t) <= offset) continue;
    if (mbarrier_at(block, barrier->offset) != barrier.get()) continue;
    cluster.record_failure(
        copy.issuer, std::string(copy.what()) + " overwrites the mbarrier " + describe(*barrier), copy.where);
    return;
  }
}

void check_bytes_at_exit(Thread& last, const Block& block) {
  for (const auto& barrier : block.mbarriers) {
    const int64_t missing = barrier->missing_bytes;
    if (!missing) continue;
    last.cluster.fail(last,
                      missing > 0
                          ? print("the block exits while %lld bytes that were expected have not come at ",
                                  static_cast<long long>(missing)) +
                                describe(*barrier)
                          : print("the block exits after %lld bytes more than were expected came at ",
                                  static_cast<long long>(-missing)) +
                                describe(*barrier) + explain_surplus(*barrier),
                      {});
  }
}

std::string describe_unread_fills(const Block& block) {
  uint64_t fills = 0;
  const Mbarrier* first = nullptr;
  const Mbarrier::Arrival* copy = nullptr;
  for (const auto& barrier : block.mbarriers) {
    if (!barrier->has_had_bytes || barrier->phase <= barrier->last_phase_passed) continue;
    if (first && !is_same_ring(*first, *barrier)) continue;
    if (!first) first = barrier.get();
    fills += barrier->phase - barrier->last_phase_passed;
    for (const Mbarrier::Arrival& arrival : barrier->last_arrivals)
      if (arrival.bytes && !copy) copy = &arrival;
  }
  if (!first || !copy) return "";
  return describe(block) +
         (fills == 1 ? " ended with a fill that nobody waited for, at "
                     : print(" ended with %llu fills that nobody waited for, one of them at ",
                             static_cast<unsigned long long>(fills))) +
         name_of(*first) + " (" + copy->what + " at " + own_place(copy->where) +
         "): does the loader make more steps than those who read?";
}

namespace {

void wait_for_phase(uint64_t* object, uint32_t parity, bool of_cluster, const char* what, Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  Mbarrier& barrier = find_mbarrier(thread, object, where);
  check_loop_ends(thread, where);
  note_place_in_ring(thread, barrier, parity & 1, where);
  cluster.jitter(thread);
  if (!phase_ended(barrier, parity)) {
    const uint32_t warp = 1u << thread.warp->index;
    if (!(barrier.waiting_warps & warp)) ++cluster.totals().barrier_waits;
    barrier.waiting_warps |= warp;
    const uint64_t phase = barrier.phase;
    barrier.waiting.push_back(&thread);
    cluster.park(thread, {WaitKind::mbarrier, &barrier, parity & 1, what, where});
    if (const uint64_t ended = barrier.phase - phase; ended != 1) {
      std::string cause = explain_wrong_pipeline(barrier);
      if (cause.empty()) cause = explain_left_behind(barrier, {&thread});
      cause = cause.empty() ? explain_repeated_wait(*barrier.block) : "\n  " + cause;
      cluster.fail(thread,
                   std::string(what) + ": the barrier went on by " +
                       (ended == 2 ? std::string("two") : std::to_string(ended)) +
                       " phases before the thread looked again; on a GPU this wait may never end; " +
                       describe(barrier) + cause +
                       explain_two_phases(barrier, /*asks_for_count=*/cause.empty()),
                   where);
    }
  }
  observe(thread, barrier, of_cluster, what, where);
}

}  // namespace

void mbarrier_wait(uint64_t* object, uint32_t parity, const char* what, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  wait_for_phase(object, parity, /*of_cluster=*/false, what, where);
}

void mbarrier_wait_cluster(uint64_t* object, uint32_t parity, const char* what, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  wait_for_phase(object, parity, /*of_cluster=*/true, what, where);
}

namespace {

bool test_phase(uint64_t* object, uint32_t parity, bool of_cluster, const char* what, Location where) {
  Thread& thread = this_thread(where);
  Mbarrier& barrier = find_mbarrier(thread, object, where);
  if (!phase_ended(barrier, parity)) {
    thread.cluster.yield_poll(thread, {WaitKind::poll, &barrier, parity & 1, what, where});
    if (!phase_ended(barrier, parity)) return false;
  }
  observe(thread, barrier, of_cluster, what, where);
  return true;
}

}  // namespace

bool mbarrier_test(uint64_t* object, uint32_t parity, const char* what, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  return test_phase(object, parity, /*of_cluster=*/false, what, where);
}

bool mbarrier_test_cluster(uint64_t* object, uint32_t parity, const char* what, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  return test_phase(object, parity, /*of_cluster=*/true, what, where);
}

void mbarrier_complete_bytes(uint64_t* object, uint32_t bytes, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Mbarrier& barrier = find_mbarrier(thread, object, where);
  barrier.missing_bytes -= bytes;
  barrier.has_had_bytes = true;
  complete_if_all_arrived(thread.cluster, barrier);
}

void mbarrier_expect_bytes_remote(const uint64_t* object, unsigned rank, uint32_t bytes, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  constexpr const char* kWhat = "mbarrier.expect_tx";
  Mbarrier& barrier = find_mbarrier(thread, find_block(thread, rank, kWhat, where), object, kWhat, where);
  barrier.missing_bytes += bytes;
  barrier.expected_bytes += bytes;
}

}  // namespace cpu_device
