/// @file
/// Schedules: their names, and that one schedule is one execution.
#include <cuda_pipeline.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace schedules_test {
namespace {

constexpr unsigned kBlocks = 6, kThreads = 64;

/// What each block saw: in which order its threads came, and which copies had landed before their wait.
std::vector<std::vector<int>> observe(const Schedule& schedule, int os_threads) {
  alignas(16) static const float input[4] = {1, 2, 3, 4};
  std::vector<std::vector<int>> seen(kBlocks);
  run(
      {.block = kThreads, .shared_bytes = 16 * kThreads, .grid = kBlocks}, schedule,
      [&] {
        auto& values = ladder::shared_storage<float[4 * kThreads]>();
        std::vector<int>& mine = seen[blockIdx.x];
        __pipeline_memcpy_async(&values[4 * threadIdx.x], input, 16);
        __pipeline_commit();
        __syncwarp();
        mine.push_back(static_cast<int>(threadIdx.x) + (std::isnan(values[4 * threadIdx.x]) ? 0 : 1000));
        __pipeline_wait_prior(0);
        __syncthreads();
        mine.push_back(static_cast<int>(threadIdx.x));
      },
      os_threads);
  return seen;
}

}  // namespace

TEST_CASE("a seed gives the same execution again, on any number of OS threads") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto once = observe(Schedule::random(seed), 1);
    REQUIRE(once == observe(Schedule::random(seed), 1));
    REQUIRE(once == observe(Schedule::random(seed), 2));
    REQUIRE(once == observe(Schedule::parse(Schedule::random(seed).name()), 3));
  }
}

TEST_CASE("different seeds, and different blocks of one seed, run differently") {
  std::set<std::vector<int>> executions;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (const auto& block : observe(Schedule::random(seed), 1)) executions.insert(block);
  }
  CHECK(executions.size() == 10 * kBlocks);
}

TEST_CASE("fixed schedules run warps in their order") {
  const auto first = [](Order order) { return observe({order, Landing::late}, 1)[0].front(); };
  CHECK(first(Order::round_robin) < 32);
  CHECK(first(Order::lowest_first) < 32);
  CHECK(first(Order::highest_first) >= 32);
  CHECK(observe({Order::lowest_first, Landing::eager}, 1)[0].front() >= 1000);
}

TEST_CASE("every schedule has a name that parses back to it") {
  std::vector<Schedule> schedules = all_schedules();
  schedules.push_back({Order::random, Landing::late, 5});
  schedules.push_back({Order::highest_first, Landing::random, 6});
  for (const Schedule& schedule : schedules) {
    const Schedule again = Schedule::parse(schedule.name());
    CHECK(again.order == schedule.order);
    CHECK(again.landing == schedule.landing);
    CHECK(again.seed == schedule.seed);
  }
  CHECK(Schedule::random(17).name() == "random:17");
  CHECK(Schedule{}.name() == "round-robin/late");
  CHECK(Schedule{Order::lowest_first, Landing::random, 3}.name() == "lowest-first/random:3");
}

TEST_CASE("reports explain the schedule that they name") {
  CHECK(Schedule::parse("round-robin/late").explained() ==
        "round-robin/late (threads take turns; copies land as late as they may)");
  CHECK(Schedule::parse("highest-first/eager").explained() ==
        "highest-first/eager (the highest warp that can run goes first; copies land as early as they may)");
  CHECK(Schedule::random(17).explained() ==
        "random:17 (threads run in an order drawn from the seed; copies land at moments drawn from the seed, "
        "when "
        "they may)");
  CHECK(Schedule::parse("round-robin/eager").explained_for_streams() ==
        "round-robin/eager (queued work runs as early as it may)");
  CHECK_THAT(failure({}, Schedule::parse("lowest-first/late"), [] { __trap(); }),
             ContainsSubstring("\n  schedule lowest-first/late (the lowest warp"));
}

TEST_CASE("a word that is no schedule is refused with the words that are") {
  for (const char* text : {"", "late", "round-robin", "round-robin/soon", "random:", "random:x", "random:-1",
                           "lowest-first/late:", "random:99999999999999999999999"}) {
    CHECK_THROWS_AS(Schedule::parse(text), std::invalid_argument);
  }
  try {
    Schedule::parse("sideways/late");
    FAIL("accepted");
  } catch (const std::invalid_argument& error) {
    CHECK_THAT(error.what(), ContainsSubstring("schedule 'sideways/late'"));
    CHECK_THAT(error.what(), ContainsSubstring("round-robin, lowest-first, highest-first or random"));
  }
}

TEST_CASE("a failing seed fails in the same way when it is replayed") {
  const auto racy = [](const Schedule& schedule) {
    return failure({.block = 64, .shared_bytes = 256}, schedule, [] {
      auto& values = ladder::shared_storage<float[64]>();
      values[threadIdx.x] = 1;
      __syncwarp();
      if (std::isnan(values[63 - threadIdx.x])) __trap();
    });
  };
  int failing = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text = racy(Schedule::random(seed));
    if (text.empty()) continue;
    ++failing;
    CHECK_THAT(text, ContainsSubstring("schedule random:" + std::to_string(seed)));
    CHECK(racy(Schedule::random(seed)) == text);
  }
  CHECK(failing > 0);
}

}  // namespace schedules_test
