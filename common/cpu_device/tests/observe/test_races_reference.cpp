/// @file
/// The race checker against a slow one that is obviously right: random programs, and the two must agree on
/// every access. The slow one remembers all accesses, and for each thread the set of those it knows. And the
/// checker's vector clocks: joined and met component by component, also where their number fills no vector
/// register.
#include <algorithm>
#include <bitset>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/cpu_device/observe/races.hpp"
#include "common/cpu_device/observe/vector_clock.hpp"
#include "common/testing/breadth.hpp"

using cpu_device::AsyncOperation;
using cpu_device::Proxy;
using cpu_device::RaceChecker;
using cpu_device::SyncObject;
using Queue = cpu_device::RaceChecker::Queue;

namespace races_reference_test {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kSyncs = 4;
constexpr unsigned kSharedBytes = 32;
constexpr unsigned kSteps = 300;
using AccessSet = std::bitset<kSteps>;

/// What somebody has synchronised with.
struct Knowledge {
  AccessSet known, visible;
  Knowledge& operator|=(const Knowledge& other) {
    known |= other.known;
    visible |= other.visible;
    return *this;
  }
};

struct Access {
  unsigned offset, bytes;
  bool write;
  Proxy proxy;
  int operation;  ///< -1: by a thread itself
};

struct Operation {
  AsyncOperation checked;
  Knowledge knowledge;
  Proxy proxy;
  int queue;            ///< operations of one queue complete in order; -1: on its own
  bool closed = false;  ///< somebody has waited for it
  AccessSet accesses;
};

/// One random program, run by both checkers.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) { races_.begin(1, kThreads, kSharedBytes); }

  /// @return the number of steps until the first race; they agreed on all.
  unsigned run() {
    for (unsigned step = 0; step < kSteps; ++step) {
      this->step();
      REQUIRE(reported_ == expected_);
      if (reported_) return step;
    }
    return kSteps;
  }

 private:
  unsigned any(unsigned count) { return static_cast<unsigned>(random_() % count); }
  /// A few threads of several warps, so that they meet again.
  unsigned any_thread() {
    constexpr unsigned kCast[] = {0, 1, 31, 32, 128, 129, 200, 255};
    return kCast[any(8)];
  }

  void step() {
    switch (any(12)) {
      case 0:
        return access_by_thread();
      case 1:
        return release();
      case 2:
      case 3:
        return acquire();
      case 4:
        return fence();
      case 5:
        return any(4) ? barrier(32 * any(8), 32) : barrier(0, kThreads);
      case 6:
        return barrier(128, 128);
      case 7:
        return issue(Queue::none, Proxy::async);
      case 8:
        return any(2) ? issue(Queue::thread, Proxy::generic) : issue(Queue::warpgroup, Proxy::async);
      case 9:
        return access_by_operation();
      default:
        return wait_for_operation();
    }
  }

  void access_by_thread() {
    const unsigned thread = any_thread();
    const Access access = any_access(Proxy::generic, -1);
    races_.access(thread, 0, access.offset, access.bytes, access.write, "access", 1);
    check(access, threads_[thread]);
    threads_[thread].known.set(accesses_.size());
    accesses_.push_back(access);
  }

  void access_by_operation() {
    const int number = any_open_operation();
    if (number < 0) return;
    Operation& operation = operations_[static_cast<size_t>(number)];
    const Access access = any_access(operation.proxy, number);
    races_.access(operation.checked, 0, access.offset, access.bytes, access.write);
    check(access, operation.knowledge);
    operation.accesses.set(accesses_.size());
    accesses_.push_back(access);
  }

  void release() {
    const unsigned thread = any_thread(), sync = any(kSyncs);
    if (any(4) == 0) {
      syncs_[sync].clear();
      known_to_syncs_[sync] = {};
    }
    races_.release(thread, syncs_[sync]);
    known_to_syncs_[sync] |= threads_[thread];
  }

  void acquire() {
    const unsigned thread = any_thread(), sync = any(kSyncs);
    races_.acquire(thread, syncs_[sync]);
    threads_[thread] |= known_to_syncs_[sync];
  }

  void fence() {
    const unsigned thread = any_thread();
    races_.fence_proxy_async(thread);
    threads_[thread].visible = threads_[thread].known;
  }

  void barrier(unsigned first, unsigned count) {
    races_.barrier_range(first, count);
    Knowledge all;
    for (unsigned t = first; t < first + count; ++t) all |= threads_[t];
    for (unsigned t = first; t < first + count; ++t) threads_[t] = all;
  }

  void issue(Queue queue, Proxy proxy) {
    if (operations_.size() == 60) return;  // fewer than the pool's agents, none of which is then used again
    Operation& operation = operations_.emplace_back();
    operation.proxy = proxy;
    std::vector<unsigned> issuers{any_thread()};
    if (queue == Queue::warpgroup) {
      issuers = {128, 129, 200, 255};  // four stand for all 128, or hardly any operation would know anything
      std::shuffle(issuers.begin(), issuers.end(), random_);
    }
    operation.queue = queue == Queue::none     ? -1
                      : queue == Queue::thread ? static_cast<int>(issuers[0])
                                               : 1000;
    operation.knowledge = threads_[issuers[0]];
    for (const unsigned t : issuers) {
      races_.issue(operation.checked, t, queue, proxy, "operation", 2);
      operation.knowledge.known &= threads_[t].known;
      operation.knowledge.visible &= threads_[t].visible;
    }
  }

  void wait_for_operation() {
    const int number = any_open_operation();
    if (number < 0) return;
    const Operation& waited = operations_[static_cast<size_t>(number)];
    Knowledge learned;
    for (int i = 0; i <= number; ++i) {  // it, and those before it in its queue
      Operation& operation = operations_[static_cast<size_t>(i)];
      if (i != number && (waited.queue < 0 || operation.queue != waited.queue)) continue;
      operation.closed = true;
      learned.known |= operation.accesses;
    }
    if (any(2)) {
      const unsigned thread = any_thread();
      races_.acquire(thread, waited.checked);
      threads_[thread] |= learned;
    } else {
      const unsigned sync = any(kSyncs);
      races_.complete(waited.checked, syncs_[sync]);
      known_to_syncs_[sync] |= learned;
    }
  }

  int any_open_operation() {
    if (operations_.empty()) return -1;
    const unsigned number = any(static_cast<unsigned>(operations_.size()));
    return operations_[number].closed ? -1 : static_cast<int>(number);
  }

  /// Mostly reads, or every program would end after a few steps.
  Access any_access(Proxy proxy, int operation) {
    if (any(3) == 0) {  // as wide as the checker keeps one history for, and aligned to that
      constexpr unsigned kWide = 16;
      return {kWide * any(kSharedBytes / kWide), kWide, any(5) == 0, proxy, operation};
    }
    const unsigned bytes = 2 * (1 + any(4));
    return {2 * any((kSharedBytes - bytes) / 2 + 1), bytes, any(5) == 0, proxy, operation};
  }

  /// Keeps for each cell only the accesses that are not yet superseded: a write supersedes all earlier
  /// accesses, a read those earlier reads that happen before it. Whatever is ordered after the later access
  /// is ordered after the earlier one.
  void check(const Access& access, const Knowledge& who) {
    for (unsigned cell = access.offset / 2; cell < (access.offset + access.bytes) / 2; ++cell) {
      std::vector<size_t>& recent = recent_[cell];
      for (const size_t i : recent) {
        const Access& before = accesses_[i];
        if (!access.write && !before.write) continue;
        if (access.operation >= 0 && access.operation == before.operation) continue;
        if (!who.known.test(i)) expected_ = true;
        const bool needs_fence = access.proxy == Proxy::async && before.proxy == Proxy::generic &&
                                 (before.write || before.operation < 0);
        if (needs_fence && !who.visible.test(i)) expected_ = true;
      }
      const auto is_past = [&](size_t i) {
        return access.write || (!accesses_[i].write && who.known.test(i));
      };
      recent.erase(std::remove_if(recent.begin(), recent.end(), is_past), recent.end());
      recent.push_back(accesses_.size());
    }
  }

  std::mt19937 random_;
  bool reported_ = false, expected_ = false;
  RaceChecker races_{[this](const std::string&) { reported_ = true; }};
  SyncObject syncs_[kSyncs];
  Knowledge known_to_syncs_[kSyncs];
  std::vector<Knowledge> threads_ = std::vector<Knowledge>(kThreads);
  std::vector<Access> accesses_;
  std::vector<size_t> recent_[kSharedBytes / 2];  ///< numbers of accesses to each cell
  std::vector<Operation> operations_;
};

}  // namespace

TEST_CASE("the race checker agrees with a slow one on random programs") {
  unsigned with_race = 0, long_ones = 0;
  const unsigned programs = ladder::testing::breadth() == ladder::testing::Breadth::more ? 2000 : 400;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    CAPTURE(seed);
    const unsigned steps = Program(seed).run();
    with_race += steps < kSteps;
    long_ones += steps > 60;
  }
  // The programs must not all be trivial.
  CHECK(with_race > programs / 4);
  CHECK(long_ones > programs / 10);
}

}  // namespace races_reference_test

namespace vector_clock_test {
namespace {

using cpu_device::ClockPool;
using cpu_device::VectorClock;

VectorClock clock_of(ClockPool& pool, const std::vector<uint32_t>& counts) {
  VectorClock clock;
  for (unsigned i = 0; i < counts.size(); ++i) pool.raise(clock, i, counts[i]);
  return clock;
}

std::vector<uint32_t> counts_of(const ClockPool& pool, const VectorClock& clock, unsigned components) {
  return {pool.counts(clock), pool.counts(clock) + components};
}

}  // namespace

TEST_CASE(
    "two clocks are joined to the larger counts and met to the smaller ones, and the other clock stays") {
  const unsigned components = GENERATE(1u, 15u, 16u, 17u, 40u);
  ClockPool pool(components);
  std::vector<uint32_t> one, other, largest, smallest;
  for (unsigned i = 0; i < components; ++i) {
    one.push_back(1 + i * 7 % 5);
    other.push_back(1 + i * 3 % 4);
    largest.push_back(std::max(one[i], other[i]));
    smallest.push_back(std::min(one[i], other[i]));
  }
  const VectorClock from = clock_of(pool, other);
  VectorClock joined = clock_of(pool, one), met = clock_of(pool, one);
  pool.join(joined, from);
  pool.meet(met, from);
  CHECK(counts_of(pool, joined, components) == largest);
  CHECK(counts_of(pool, met, components) == smallest);
  CHECK(counts_of(pool, from, components) == other);
}

}  // namespace vector_clock_test
