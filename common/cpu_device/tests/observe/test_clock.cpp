/// @file
/// The virtual clock must tell the qualitative truth about copies and math, and keep its books straight.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <vector>

#include "common/cpu_device/observe/clock.hpp"

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using cpu_device::BlockTime;
using cpu_device::ClockModel;
using cpu_device::Span;
using cpu_device::VirtualClock;

namespace clock_test {
namespace {

// A 128x128 block that walks along K in tiles of 64, bf16, with two warpgroups.
constexpr unsigned kThreads = 256;
constexpr double kTileBytes = 2 * (128 + 128) * 64;
constexpr double kTileFlops = 2.0 * 128 * 128 * 64;

/// Two warpgroups multiply a tile with wgmma and wait for it.
void multiply(VirtualClock& clock) {
  for (unsigned first = 0; first < kThreads; first += 128) {
    const double done = clock.wgmma(first, clock.now(first), kTileFlops / 2);
    for (unsigned t = first; t < first + 128; ++t) clock.wait_until(t, done, "wgmma");
  }
}

/// Through registers: all threads load, store to shared memory, meet, multiply, meet.
BlockTime load_then_compute(int k_tiles) {
  VirtualClock clock;
  clock.begin(1, kThreads, false);
  for (int k = 0; k < k_tiles; ++k) {
    for (unsigned t = 0; t < kThreads; ++t) {
      clock.load_global(t, kTileBytes / kThreads);
      clock.store_shared(t, kTileBytes / kThreads);
    }
    clock.barrier(0, kThreads, "__syncthreads");
    multiply(clock);
    clock.barrier(0, kThreads, "__syncthreads");
  }
  return clock.block_time(0);
}

/// With cp.async into a ring of slots, which runs `slots - 1` tiles ahead.
BlockTime ring(int k_tiles, int slots) {
  VirtualClock clock;
  clock.begin(1, kThreads, false);
  std::vector<std::vector<double>> lands_at;
  const auto copy_tile = [&] {
    lands_at.emplace_back();
    for (unsigned t = 0; t < kThreads; ++t) {
      lands_at.back().push_back(clock.copy_async(t, kTileBytes / kThreads));
    }
  };
  const size_t tiles = static_cast<size_t>(k_tiles);
  while (lands_at.size() + 1 < static_cast<size_t>(slots) && lands_at.size() < tiles) copy_tile();
  for (size_t k = 0; k < tiles; ++k) {
    if (lands_at.size() < tiles) copy_tile();
    for (unsigned t = 0; t < kThreads; ++t) clock.wait_until(t, lands_at[k][t], "full");
    clock.barrier(0, kThreads, "__syncthreads");
    multiply(clock);
    clock.barrier(0, kThreads, "__syncthreads");
  }
  return clock.block_time(0);
}

}  // namespace

TEST_CASE("loading and computing in turns overlaps nothing") {
  const BlockTime time = load_then_compute(16);
  CHECK(time.copy > 0);
  CHECK(time.math > 0);
  CHECK_THAT(time.overlap, WithinAbs(0, 1e-6));
  CHECK(time.length >= time.copy + time.math);
}

TEST_CASE("a double buffer overlaps copies with math and is faster than taking turns") {
  const BlockTime turns = load_then_compute(16);
  const BlockTime buffered = ring(16, 2);
  CHECK(buffered.overlap > 0.5 * buffered.math);
  CHECK(buffered.length < 0.9 * turns.length);
}

TEST_CASE("a single slot overlaps nothing even with asynchronous copies") {
  CHECK_THAT(ring(16, 1).overlap, WithinAbs(0, 1e-6));
}

TEST_CASE("more slots are never slower") {
  for (const int k_tiles : {1, 2, 3, 7, 16, 64}) {
    double previous = ring(k_tiles, 1).length;
    for (int slots = 2; slots <= 6; ++slots) {
      CAPTURE(k_tiles, slots);
      const double now = ring(k_tiles, slots).length;
      CHECK(now <= previous * 1.0001);
      previous = now;
    }
  }
}

TEST_CASE("one tile has nothing to overlap with") {
  for (const int slots : {1, 2, 4}) CHECK_THAT(ring(1, slots).overlap, WithinAbs(0, 1e-6));
  CHECK_THAT(load_then_compute(1).overlap, WithinAbs(0, 1e-6));
}

TEST_CASE("math cannot exceed the rate of the tensor cores, nor copies the rate of memory") {
  const ClockModel model;
  const int k_tiles = 64;
  const BlockTime time = ring(k_tiles, 4);
  CHECK(time.math >= 0.98 * k_tiles * kTileFlops / model.tensor_flops_per_cycle);
  CHECK(time.length >= k_tiles * kTileBytes / model.memory_bytes_per_cycle);
  CHECK(time.overlap <= std::min(time.copy, time.math));
  CHECK(time.length >= std::max(time.copy, time.math));
}

TEST_CASE("the order in which threads are simulated changes nothing but rounding") {
  const auto run = [](bool backwards) {
    VirtualClock clock;
    clock.begin(1, kThreads, false);
    for (unsigned i = 0; i < kThreads; ++i) {
      const unsigned t = backwards ? kThreads - 1 - i : i;
      for (int k = 0; k < 8; ++k) {
        clock.load_global(t, 16);
        clock.use_loads(t);  // every thread runs far ahead of those that were not simulated yet
      }
    }
    return clock.block_time(0).length;
  };
  CHECK_THAT(run(true), WithinRel(run(false), 1e-6));
  // Eight dependent loads: eight latencies, not eight for each thread.
  const ClockModel model;
  CHECK(run(false) < 8 * (model.memory_latency + 2 * kThreads * 16 / model.memory_bytes_per_cycle));
}

TEST_CASE("two warps of one sub-core share its tensor core, warps of different sub-cores do not") {
  const auto run = [](unsigned other_warp) {
    VirtualClock clock;
    clock.begin(1, kThreads, false);
    clock.mma_sync(0, 64000);
    clock.mma_sync(other_warp * 32, 64000);
    return clock.block_time(0).length;
  };
  CHECK_THAT(run(1), WithinAbs(100, 1e-3));
  CHECK_THAT(run(4), WithinAbs(200, 1e-3));
}

TEST_CASE("fused multiply-adds of a full block run at the rate of the CUDA cores") {
  VirtualClock clock;
  clock.begin(1, kThreads, false);
  const double flops_per_thread = 2000;
  for (unsigned t = 0; t < kThreads; ++t) clock.fma(t, flops_per_thread);
  const double flops_per_cycle = 4 * ClockModel().fma_flops_per_cycle;
  CHECK_THAT(clock.block_time(0).length, WithinRel(kThreads * flops_per_thread / flops_per_cycle, 0.01));
}

TEST_CASE("lanes that are simulated one after the other still share the cores like a warp") {
  VirtualClock clock;
  clock.begin(1, kThreads, false);
  const int loads = 500;
  for (unsigned t = 0; t < kThreads; ++t) {
    for (int i = 0; i < loads; ++i) clock.load_shared(t, 4);
  }
  // As long as the busiest resource works, give or take what each lane waits for itself.
  const ClockModel& model = clock.model();
  const double through_banks = kThreads * loads * 4 / model.shared_bytes_per_cycle;
  const double flops = kThreads * loads * 4 * model.fma_per_shared_byte * 2;
  const double through_cores = flops / (4 * model.fma_flops_per_cycle);
  CHECK(clock.block_time(0).length >= 0.98 * std::max(through_banks, through_cores));
  CHECK(clock.block_time(0).length <= 1.5 * (through_banks + through_cores));
}

TEST_CASE("the constants can be replaced") {
  ClockModel slow;
  slow.memory_latency = 10000;
  VirtualClock clock(slow);
  clock.begin(1, 32, false);
  clock.load_global(0, 4);
  clock.use_loads(0);
  CHECK(clock.now(0) >= 10000);
}

TEST_CASE("blocks of a cluster have an SM each") {
  VirtualClock clock;
  clock.begin(2, 128, false);
  clock.copy_async(0, 1e6);
  const double other_block = clock.copy_async(128, 32);
  CHECK(other_block < 2 * clock.model().memory_latency);
  CHECK(clock.block_time(0).copy > clock.block_time(1).copy);
}

TEST_CASE("bytes from SM to SM take longer than to one's own shared memory, and share the way") {
  VirtualClock clock;
  clock.begin(2, 32, false);
  const double landed = clock.send_to_block(0, 16);
  CHECK(landed >= clock.model().cluster_latency);
  CHECK(landed < clock.model().memory_latency);
  CHECK(clock.now(0) < 10);  // nobody waits for a store
  CHECK(clock.send_to_block(1, 1e5) > 1e5 / clock.model().cluster_bytes_per_cycle);
  clock.load_from_block(32, 4);
  CHECK(clock.now(32) < 10);
  clock.use_loads(32);
  CHECK(clock.now(32) >= clock.model().cluster_latency);
}

TEST_CASE("a barrier of any threads is left when the last of them has come") {
  VirtualClock clock;
  clock.begin(2, 32, false);
  clock.wait_until(40, 500, "something");
  clock.wait_until(7, 900, "something");
  const unsigned threads[] = {3, 40};
  clock.barrier_of(threads, 2, "cluster.sync");
  CHECK(clock.now(3) >= 500);
  CHECK(clock.now(3) < 900);
  CHECK(clock.now(40) == clock.now(3));
  CHECK(clock.now(0) == 0);
}

TEST_CASE("what a warp has in flight at once counts once, in whatever order it is issued") {
  VirtualClock clock;
  clock.begin(1, 32, true);
  const auto copies = [&] {
    std::vector<Span> spans = clock.spans();
    spans.erase(
        std::remove_if(spans.begin(), spans.end(), [](const Span& span) { return span.what != "copy"; }),
        spans.end());
    return spans;
  };
  for (const double begin : {20000.0, 10000.0, 0.0}) {  // three lanes, the one that comes last first
    const unsigned lane = begin == 0 ? 2 : begin == 10000 ? 1 : 0;
    clock.wait_until(lane, begin, "full");
    clock.copy_async(lane, 16);
  }
  REQUIRE(copies().size() == 3);
  CHECK(copies()[0].end < copies()[1].begin);
  CHECK(copies()[1].end < copies()[2].begin);

  const double end = clock.copy_async(3, 30000 * clock.model().memory_bytes_per_cycle);  // over all of them
  REQUIRE(copies().size() == 1);
  CHECK(copies()[0].begin == 0);
  CHECK(copies()[0].end == end);
  CHECK_THAT(clock.block_time(0).copy, WithinAbs(end, 1e-6));
}

TEST_CASE("a trace names copies, math and waits, in order and once for a warp") {
  VirtualClock clock;
  clock.begin(1, 64, true);
  double landed = 0;
  for (unsigned t = 0; t < 32; ++t) landed = std::max(landed, clock.copy_async(t, 128));
  for (unsigned t = 32; t < 64; ++t) clock.wait_until(t, landed, "full[0]");
  clock.mma_sync(32, 64000);
  const std::vector<Span> spans = clock.spans();
  CHECK(std::is_sorted(spans.begin(), spans.end(),
                       [](const Span& a, const Span& b) { return a.begin < b.begin; }));
  const auto count = [&](unsigned warp, const char* what) {
    return std::count_if(spans.begin(), spans.end(),
                         [&](const Span& span) { return span.warp == warp && span.what == what; });
  };
  CHECK(count(0, "copy") == 1);
  CHECK(count(1, "wait full[0]") == 1);
  CHECK(count(1, "mma") == 1);
  CHECK(spans.size() == 3);
}

TEST_CASE("a new cluster starts at time zero") {
  VirtualClock clock;
  clock.begin(1, 32, true);
  clock.copy_async(0, 1e5);
  clock.begin(1, 32, true);
  CHECK(clock.now(0) == 0);
  CHECK(clock.spans().empty());
  CHECK(clock.copy_async(0, 32) < 1000);
}

}  // namespace clock_test
