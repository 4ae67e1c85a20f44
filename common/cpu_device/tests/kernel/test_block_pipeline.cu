/// @file
/// cuda::pipeline of scope block, its barriers, and cuda::barrier.
#include <cooperative_groups.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cuda/pipeline>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;
namespace cg = cooperative_groups;

namespace block_pipeline_test {
namespace {

constexpr int kSlots = 2, kTiles = 7, kTile = 256;
constexpr unsigned kThreads = 64;

/// The statement that the thread with this number leaves out in the fourth tile.
enum class Without { nothing, acquire, commit, wait, release };

struct Storage {
  alignas(16) float tiles[kSlots][kTile];
  cuda::pipeline_shared_state<cuda::thread_scope_block, kSlots> state;
};
const Shape kShape{.block = kThreads, .shared_bytes = sizeof(Storage)};

std::vector<float> numbers() {
  std::vector<float> values(kTiles * kTile);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

/// All threads copy and all threads sum what others copied.
int unified(const Schedule& schedule, Without without = Without::nothing) {
  const std::vector<float> input = numbers();
  std::vector<float> sums(kThreads);
  run(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    const auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &shared.state);
    const unsigned t = threadIdx.x;
    const auto keeps = [&](int tile, Without statement) {
      return without != statement || tile != 3 || t / 32 != 1;
    };
    const auto copy = [&](int tile) {
      if (keeps(tile, Without::acquire)) pipe.producer_acquire();
      cuda::memcpy_async(block, shared.tiles[tile % kSlots], &input[static_cast<size_t>(tile * kTile)],
                         cuda::aligned_size_t<16>(sizeof shared.tiles[0]), pipe);
      if (keeps(tile, Without::commit)) pipe.producer_commit();
    };
    copy(0);
    float sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      if (tile + 1 < kTiles) copy(tile + 1);
      if (keeps(tile, Without::wait)) pipe.consumer_wait();
      for (unsigned i = 0; i < 4; ++i) sum += shared.tiles[tile % kSlots][4 * (kThreads - 1 - t) + i];
      if (keeps(tile, Without::release)) pipe.consumer_release();
    }
    sums[t] = sum;
  });
  int wrong = 0;
  for (unsigned t = 0; t < kThreads; ++t) {
    float expected = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      for (unsigned i = 0; i < 4; ++i)
        expected += input[static_cast<size_t>(tile * kTile) + 4 * (kThreads - 1 - t) + i];
    }
    wrong += sums[t] != expected;
  }
  return wrong;
}

std::string blame(const Schedule& schedule, Without without) {
  try {
    unified(schedule, without);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

/// What the consumers stop doing after two tiles.
enum class Stops { nothing, releasing, consuming };

/// Warp 0 copies, the other warp sums.
template <class MakePipeline>
void roles(const Schedule& schedule, MakePipeline&& make, Stops stops = Stops::nothing) {
  const std::vector<float> input = numbers();
  float total = 0;
  run(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    const bool produces = threadIdx.x < 32;
    auto pipe = make(cg::this_thread_block(), &shared.state, produces);
    float sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      if (produces) {
        pipe.producer_acquire();
        cuda::memcpy_async(cg::tiled_partition<32>(cg::this_thread_block()), shared.tiles[tile % kSlots],
                           &input[static_cast<size_t>(tile * kTile)],
                           cuda::aligned_size_t<16>(sizeof shared.tiles[0]), pipe);
        pipe.producer_commit();
      } else {
        if (stops == Stops::consuming && tile == 2) break;
        pipe.consumer_wait();
        for (int i = static_cast<int>(threadIdx.x) - 32; i < kTile; i += 32)
          sum += shared.tiles[tile % kSlots][i];
        if (stops != Stops::releasing || tile < 2) pipe.consumer_release();
      }
    }
    for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x == 32) total = sum;
  });
  float expected = 0;
  for (float value : input) expected += value;
  REQUIRE(total == expected);
}

constexpr auto kByRole = [](const auto& block, auto* state, bool produces) {
  return cuda::make_pipeline(block, state,
                             produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
};
constexpr auto kByCount = [](const auto& block, auto* state, bool) {
  return cuda::make_pipeline(block, state, size_t{32});
};

}  // namespace

TEST_CASE("a unified block pipeline is right on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) REQUIRE(unified(schedule) == 0);
}

TEST_CASE("a block pipeline with roles is right on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    roles(schedule, kByRole);
    roles(schedule, kByCount);
  }
}

TEST_CASE("a dropped acquire is named") {
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE_THAT(blame(schedule, Without::acquire),
                 ContainsSubstring("producer_commit without a producer_acquire"));
  }
}

TEST_CASE("a dropped wait is named") {
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE_THAT(blame(schedule, Without::wait),
                 ContainsSubstring("consumer_release without a consumer_wait"));
  }
}

TEST_CASE("a dropped commit ends in a report of who waits at which stage") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = blame(schedule, Without::commit);
    CHECK_THAT(text, ContainsSubstring("deadlock"));
    CHECK_THAT(text, ContainsSubstring("in consumer_wait for pipeline.produced["));
    CHECK_THAT(text, ContainsSubstring("of 64 arrivals missing"));
  }
}

TEST_CASE("a dropped release names the warp that never arrived") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = blame(schedule, Without::release);
    REQUIRE_THAT(text, ContainsSubstring("in producer_acquire for pipeline.consumed["));
    REQUIRE_THAT(text, ContainsSubstring("32 of 64 arrivals missing"));
    REQUIRE_THAT(text, ContainsSubstring("arrived: warp 0 (consumer_release at test_block_pipeline.cu:"));
    REQUIRE_THAT(text, ContainsSubstring("arrived in the phase before but not in this one: warp 1"));
  }
}

TEST_CASE("a wait after a dropped release is named, with what would come of it") {
  for (const Schedule& schedule : all_schedules()) {
    try {
      roles(schedule, kByRole, Stops::releasing);
      FAIL("no failure");
    } catch (const Failure& failure) {
      CHECK_THAT(failure.what(),
                 ContainsSubstring("consumer_wait again without a consumer_release: it waits for the same "
                                   "slot as before"));
      CHECK_THAT(failure.what(), ContainsSubstring("pipeline.consumed[0]\n  in block (0,0,0) warp 1 lane"));
    }
  }
}

TEST_CASE("a stage that was committed without copies, and that nobody waited for, is named") {
  for (const Schedule& schedule : fixed_schedules()) {
    if (schedule.landing != Landing::late) continue;
    CHECK_THAT(failure(kShape, schedule,
                       [] {
                         auto& shared = ladder::shared_storage<Storage>();
                         auto pipe = cuda::make_pipeline(cg::this_thread_block(), &shared.state);
                         pipe.producer_acquire();
                         pipe.producer_commit();
                       }),
               ContainsSubstring("the block exits while an arrival of producer_commit at "
                                 "pipeline.produced[0] is pending: a stage was committed that nobody waited "
                                 "for"));
  }
}

TEST_CASE("who acquires one slot more than there are, and has released none, is told that it holds all") {
  const auto acquire = [](int ahead) {
    return [ahead] {
      auto pipe = cuda::make_pipeline(cg::this_thread_block(), &ladder::shared_storage<Storage>().state);
      int acquired = 0;
      for (int tile = 0; tile < kTiles; ++tile) {
        for (; acquired < kTiles && acquired < tile + ahead; ++acquired) {
          pipe.producer_acquire();
          pipe.producer_commit();
        }
        pipe.consumer_wait();
        pipe.consumer_release();
      }
    };
  };
  for (const Schedule& schedule : all_schedules()) {
    CHECK(failure(kShape, schedule, acquire(kSlots)) == "");
    CHECK_THAT(
        failure(kShape, schedule, acquire(kSlots + 1)),
        ContainsSubstring("\n  nobody has ever arrived there: warps 0-1 have acquired all 2 slots, and "
                          "acquire one more before any release\n"));
  }
}

TEST_CASE("a consumer warp that stops consuming stops the producer") {
  for (const Schedule& schedule : fixed_schedules()) {
    try {
      roles(schedule, kByRole, Stops::consuming);
      FAIL("no failure");
    } catch (const Failure& failure) {
      CHECK_THAT(failure.what(), ContainsSubstring("warp 0 waits at test_block_pipeline.cu:"));
      CHECK_THAT(failure.what(), ContainsSubstring("producer_acquire for pipeline.consumed["));
      CHECK_THAT(failure.what(), ContainsSubstring("nobody arrived in this phase"));
    }
  }
}

TEST_CASE("the last thread that quits a pipeline ends it") {
  const CheckRaces checked;
  int last = 0;
  run(kShape, {}, [&] {
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &ladder::shared_storage<Storage>().state);
    last += pipe.quit();
  });
  CHECK(last == 1);
}

TEST_CASE("cuda::barrier separates phases on every schedule") {
  const CheckRaces checked;
  struct Shared {
    cuda::barrier<cuda::thread_scope_block> barrier;
    int values[kThreads];
  };
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = kThreads, .shared_bytes = sizeof(Shared)}, schedule, [&] {
      auto& shared = ladder::shared_storage<Shared>();
      if (threadIdx.x == 0) init(&shared.barrier, kThreads);
      __syncthreads();
      for (int phase = 0; phase < 5; ++phase) {
        shared.values[threadIdx.x] = phase;
        shared.barrier.arrive_and_wait();
        if (shared.values[kThreads - 1 - threadIdx.x] != phase) ++wrong;
        auto token = shared.barrier.arrive();
        shared.barrier.wait(std::move(token));
      }
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("copies arrive on a cuda::barrier when they have landed") {
  const CheckRaces checked;
  alignas(16) static const float input[4 * kThreads] = {1, 2, 3};
  struct Shared {
    alignas(16) float values[4 * kThreads];
    cuda::barrier<cuda::thread_scope_block> barrier;
  };
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = kThreads, .shared_bytes = sizeof(Shared)}, schedule, [&] {
      auto& shared = ladder::shared_storage<Shared>();
      if (threadIdx.x == 0) init(&shared.barrier, kThreads);
      __syncthreads();
      cuda::memcpy_async(cg::this_thread_block(), shared.values, input,
                         cuda::aligned_size_t<16>(sizeof input), shared.barrier);
      shared.barrier.arrive_and_wait();
      for (unsigned i = 0; i < 4 * kThreads; ++i) wrong += shared.values[i] != input[i];
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("a barrier that was never initialised, and one arrival too many, are named") {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  const Shape shape{.block = 32, .shared_bytes = sizeof(Barrier)};
  CHECK_THAT(failure(shape, {}, [] { ladder::shared_storage<Barrier>().arrive_and_wait(); }),
             ContainsSubstring("was never initialised, or was overwritten"));
  CHECK_THAT(failure(shape, {},
                     [] {
                       auto& barrier = ladder::shared_storage<Barrier>();
                       if (threadIdx.x == 0) init(&barrier, 32);
                       __syncthreads();
                       (void)barrier.arrive(33);
                     }),
             ContainsSubstring(
                 "more arrivals than expected at cuda::barrier (initialised at test_block_pipeline.cu:"));
}

TEST_CASE("polling an mbarrier that nobody completes is reported") {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  const std::string text = failure({.block = 32, .shared_bytes = sizeof(Barrier)}, {}, [] {
    auto& barrier = ladder::shared_storage<Barrier>();
    if (threadIdx.x == 0) init(&barrier, 33);
    __syncthreads();
    (void)barrier.arrive();
    while (!mbarrier_test(barrier.handle(), 0, "try_wait", Location::current())) {
    }
  });
  CHECK_THAT(text, ContainsSubstring("every running thread polls and nothing changes"));
  CHECK_THAT(text, ContainsSubstring("in try_wait for cuda::barrier, phase of parity 0"));
  CHECK_THAT(text, ContainsSubstring("1 of 33 arrivals missing"));
}

}  // namespace block_pipeline_test
