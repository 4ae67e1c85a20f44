/// @file
/// __syncthreads and named barriers: what they order, and the mistakes made with them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"
#include "common/ptx/named_barrier.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace barriers_test {
namespace {

struct Storage {
  float values[128];
};
const Shape kShape{.block = 128, .shared_bytes = sizeof(Storage)};

/// Each thread reads what its mirror image wrote. @return how many read something else.
template <bool kSynchronise>
int reverse(const Schedule& schedule) {
  std::vector<float> result(128);
  run(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    shared.values[threadIdx.x] = static_cast<float>(threadIdx.x);
    if constexpr (kSynchronise) __syncthreads();
    result[threadIdx.x] = shared.values[127 - threadIdx.x];
  });
  int wrong = 0;
  for (int i = 0; i < 128; ++i) wrong += result[i] != static_cast<float>(127 - i);
  return wrong;
}

}  // namespace

TEST_CASE("__syncthreads orders shared memory on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) REQUIRE(reverse<true>(schedule) == 0);
}

TEST_CASE("a missing __syncthreads shows on every fixed schedule") {
  for (const Schedule& schedule : fixed_schedules()) CHECK(reverse<false>(schedule) > 0);
}

TEST_CASE("fresh shared memory is NaN, for every block anew") {
  std::vector<int> not_nan(4);
  run(
      {.block = 128, .shared_bytes = sizeof(Storage), .grid = 4}, {},
      [&] {
        auto& shared = ladder::shared_storage<Storage>();
        if (!std::isnan(shared.values[threadIdx.x])) ++not_nan[blockIdx.x];
        __syncthreads();
        shared.values[threadIdx.x] = 1;
      },
      1);
  CHECK(not_nan == std::vector<int>(4, 0));
}

TEST_CASE("threads of a block that meet in different __syncthreads are named") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(kShape, schedule, [] {
      if (threadIdx.x < 16) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    });
    CHECK_THAT(text, ContainsSubstring("divergent __syncthreads"));
    CHECK_THAT(text, ContainsSubstring("test_barriers.cu:"));
  }
}

TEST_CASE("a deadlock says who waits where and who never arrived") {
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure(kShape, schedule, [] {
      if (threadIdx.x / 32 == 2) {
        named_barrier_sync(3, 64, Location::current());  // one warp of the two
      } else {
        __syncthreads();
      }
    });
    REQUIRE_THAT(text, ContainsSubstring("\n  no thread can run and nothing is in flight; 128 of 128"));
    REQUIRE_THAT(text, ContainsSubstring("deadlock: warp 2 waits at test_barriers.cu:"));
    REQUIRE_THAT(text, ContainsSubstring("block (0,0,0) warps 0-1 wait at test_barriers.cu:"));
    REQUIRE_THAT(text, ContainsSubstring("in __syncthreads: 96 of 128 threads arrived"));
    REQUIRE_THAT(text, ContainsSubstring("warp 2 waits at test_barriers.cu:"));
    REQUIRE_THAT(text, ContainsSubstring("in named barrier 3: 32 of 64 threads arrived"));
    REQUIRE_THAT(
        text, ContainsSubstring("never arrived at the __syncthreads of block (0,0,0): warp 2 (32 threads)"));
    REQUIRE_THAT(text, ContainsSubstring("schedule " + schedule.name()));
  }
}

TEST_CASE("a deadlock in a barrier for some warps says who came before, or that nobody else ever did") {
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string exited = failure(kShape, schedule, [] {
      for (int turn = 0; turn < 3; ++turn) {  // the last turn is not passed on
        if (threadIdx.x / 64 == 0 && turn < 2) named_barrier_arrive(3, 128, Location::current());
        if (threadIdx.x / 64 == 1) named_barrier_sync(3, 128, Location::current());
      }
    });
    CHECK_THAT(exited, ContainsSubstring("deadlock: warps 2-3 wait at test_barriers.cu:"));
    CHECK_THAT(exited, ContainsSubstring("in named barrier 3: 64 of 128 threads arrived\n  warps 0-1 arrived "
                                         "there last at test_barriers.cu:"));
    CHECK_THAT(exited, ContainsSubstring(", twice in all, and have exited"));
    const std::string wrong_first = failure(kShape, schedule, [] {  // the first turn goes to the wrong half
      const unsigned me = threadIdx.x / 64;
      if (me == 0) named_barrier_arrive(2, 128, Location::current());
      for (int turn = 0; turn < 2; ++turn) {
        named_barrier_sync(1 + me, 128, Location::current());
        if (me == 0 || turn == 0) named_barrier_arrive(2 - me, 128, Location::current());
      }
    });
    CHECK_THAT(wrong_first,
               ContainsSubstring(", once in all, and have exited; those who wait have come twice: "
                                 "was the first turn, or the last, never passed to them?\n"));
    const std::string never = failure(kShape, schedule, [] {  // each half waits for the other's turn
      named_barrier_sync(1 + threadIdx.x / 64, 128, Location::current());
    });
    CHECK_THAT(never, ContainsSubstring("deadlock: warps 0-1 wait at test_barriers.cu:"));
    CHECK_THAT(never, ContainsSubstring(" in named barrier 1, warps 2-3 in named barrier 2: nobody else has "
                                        "ever arrived at any of these\n  if they pass turns to each other, "
                                        "the first one is missing: should it be passed to warps 0-1 before "
                                        "the first wait? Or should all of them meet in one barrier?\n"));
    const std::string elsewhere = failure(kShape, schedule, [] {  // these wait for a turn at other places
      if (threadIdx.x / 64 == 0) named_barrier_sync(1, 128, Location::current());
      if (threadIdx.x / 64 == 1) named_barrier_sync(2, 128, Location::current());
    });
    CHECK_THAT(elsewhere, ContainsSubstring("64 of 128 threads arrived\n  no other thread has ever arrived "
                                            "there; warps 2-3 now wait at test_barriers.cu:"));
    CHECK_THAT(elsewhere, ContainsSubstring(" in named barrier 2\n"));
  }
}

TEST_CASE("a thread that exits while others wait for it is named") {
  const std::string early = failure(kShape, {Order::highest_first, Landing::late}, [] {
    if (threadIdx.x == 0) return;
    __syncthreads();
  });
  CHECK_THAT(early,
             ContainsSubstring("exits while others of its block wait in __syncthreads at test_barriers.cu:"));
  const std::string late = failure(kShape, {Order::lowest_first, Landing::late}, [] {
    if (threadIdx.x == 0) return;
    __syncthreads();
  });
  CHECK_THAT(late,
             ContainsSubstring("__syncthreads, which not all threads of the block call: threads of the block "
                               "have exited: warp 0 lane 0\n"));
}

TEST_CASE(
    "a __syncthreads in a role names the lanes that have exited, and who of their warps waits elsewhere") {
  const std::string waits = failure(kShape, {Order::highest_first, Landing::late}, [] {
    if (threadIdx.x / 32 == 0) __syncthreads();
    if (threadIdx.x / 32 == 1 && threadIdx.x % 32 > 1) return;
    if (threadIdx.x == 32) named_barrier_sync(3, 64, Location::current());
  });
  CHECK_THAT(waits,
             ContainsSubstring("threads of the block have exited: warp 1 lanes 1-31, warps 2-3; of the "
                               "others, warp 1 lane 0 waits at test_barriers.cu:"));
  CHECK_THAT(waits, ContainsSubstring(", and it has not come here\n"));
  const std::string alike = failure(kShape, {Order::highest_first, Landing::late}, [] {
    if (threadIdx.x / 32 == 0) __syncthreads();
    if (threadIdx.x % 32 > 0) return;
    named_barrier_sync(3, 128, Location::current());
  });
  CHECK_THAT(alike,
             ContainsSubstring("have exited: warps 1-3 lanes 1-31; of the others, warp 1 lane 0 waits at "));
  CHECK_THAT(alike, ContainsSubstring(", and 1 more elsewhere, and they have not come here\n"));
}

TEST_CASE("warps meet in named barriers, and some only arrive") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    int produced = 0, wrong = 0;
    run(kShape, schedule, [&] {
      if (threadIdx.x < 32) {
        if (threadIdx.x == 0) produced = 1;
        named_barrier_arrive(1, 64, Location::current());
      } else if (threadIdx.x < 64) {
        named_barrier_sync(1, 64, Location::current());
        if (produced != 1) ++wrong;
      }
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("all threads of a named barrier learn whether one said yes, each time anew") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run(kShape, schedule, [&] {
      if (threadIdx.x >= 64) return;
      for (unsigned round = 0; round < 6; ++round) {
        const bool anyone = round % 3 > 0;
        if (ptx::named_barrier_or(1, 64, anyone && threadIdx.x == 12 * round) != anyone) ++wrong;
      }
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("who only arrives at a named barrier makes known what came before, and learns nothing") {
  enum Access { before_arrival, after_arrival, overwritten_by_who_arrived };
  const auto kernel = [](Access access) {
    return [=] {
      auto& shared = ladder::shared_storage<Storage>();
      volatile float seen = 0;
      static_cast<void>(seen);
      if (threadIdx.x < 32) {
        if (access == before_arrival && threadIdx.x == 0) shared.values[0] = 1;
        ptx::named_barrier_arrive(1, 64);
        if (access != before_arrival && threadIdx.x == 0) shared.values[0] = 1;
      } else if (threadIdx.x < 64) {
        if (access == overwritten_by_who_arrived && threadIdx.x == 32) seen = shared.values[0];
        ptx::named_barrier_sync(1, 64);
        if (access != overwritten_by_who_arrived && threadIdx.x == 32) seen = shared.values[0];
      }
    };
  };
  if (!instrumented()) return;
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    REQUIRE(failure(kShape, schedule, kernel(before_arrival)) == "");
    REQUIRE_THAT(failure(kShape, schedule, kernel(after_arrival)),
                 ContainsSubstring("race in shared memory"));
    REQUIRE_THAT(failure(kShape, schedule, kernel(overwritten_by_who_arrived)),
                 ContainsSubstring("race in shared memory"));
  }
}

TEST_CASE("named barriers are checked for whole warps, one count and a valid number") {
  CHECK_THAT(failure(kShape, {}, [] { named_barrier_sync(1, 100, Location::current()); }),
             ContainsSubstring("named barrier 1 for 100 threads, which are not whole warps"));
  CHECK_THAT(failure(kShape, {}, [] { named_barrier_sync(16, 128, Location::current()); }),
             ContainsSubstring("named barrier 16; a block has 16"));
  CHECK_THAT(
      failure(kShape, {}, [] { named_barrier_sync(1, threadIdx.x < 64 ? 128 : 64, Location::current()); }),
      ContainsSubstring("named barrier 1 for 64 threads, while others came to it for 128"));
}

TEST_CASE("a kernel that polls for ever is reported") {
  const std::string text = failure(kShape, {}, [] {
    for (;;) __nanosleep(100);
  });
  CHECK_THAT(text, ContainsSubstring("every running thread polls and nothing changes"));
  CHECK_THAT(text, ContainsSubstring("in __nanosleep"));
}

TEST_CASE("a kernel that only meets at barriers for ever is reported") {
  const std::string text = failure({.block = 32}, {}, [] {
    for (;;) __syncthreads();
  });
  CHECK_THAT(text, ContainsSubstring("the kernel runs for ever"));
  CHECK_THAT(text, ContainsSubstring("block (0,0,0): all threads have passed the __syncthreads at "
                                     "test_barriers.cu:"));
}

TEST_CASE("a barrier that is passed more often than the kernel's numbers say is named while it runs") {
  std::string after_100, after_1000;
  run({.block = 32}, {}, [&] {
    for (int i = 0; i < 1000; ++i) {
      __syncthreads();
      if (threadIdx.x == 0 && i == 10) CHECK(describe_endless_loop().empty());
      if (threadIdx.x == 0 && i == 100) after_100 = describe_endless_loop();
    }
    if (threadIdx.x == 0) after_1000 = describe_endless_loop();
  });
  CHECK_THAT(after_100, StartsWith("block (0,0,0): all threads have passed the __syncthreads at "
                                   "test_barriers.cu:") &&
                            EndsWith(" 96 times: does the loop end?"));
  CHECK_THAT(after_1000, EndsWith(" 992 times: does the loop end?"));
  CHECK(describe_endless_loop().empty());  // nothing runs
}

TEST_CASE("a loop that passes a barrier four times as often as a number of the kernel is ended") {
  struct Restored {
    ~Restored() { endless_loops_end_after = std::numeric_limits<double>::infinity(); }
  } restored;
  const auto failure_of = [](int steps, uint64_t largest) {
    try {
      KernelLaunch kernel{"test", 1, 32, 1};
      kernel.largest_word = kernel.largest_count = largest;
      launch(kernel, [steps] {
        for (int i = 0; i < steps; ++i) {
          __syncthreads();
          __syncwarp();
        }
      });
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  CHECK(failure_of(15'000, 64).empty());
  endless_loops_end_after = 0;
  CHECK_THAT(failure_of(15'000, 64), ContainsSubstring("the kernel runs for ever: block (0,0,0): all threads "
                                                       "have passed the __syncthreads at test_barriers.cu:"));
  CHECK(failure_of(1'100, 64) != "");
  CHECK(failure_of(1'000, 64).empty());
  CHECK(failure_of(2'000, 500).empty());  // as many as this number allows
  CHECK(failure_of(2'100, 500) != "");
  CHECK(failure_of(15'000, 1'000).empty());  // as many as one block takes steps for a product of this size
  CHECK(failure_of(15'000, 0).empty());      // nobody knows how many
}

TEST_CASE("the numbers of a kernel are known from its parameters") {
  struct Product {
    const float* a;
    int m, n, k, batches;  // no padding, which may hold anything
  };
  KernelLaunch kernel;
  const auto note = [&](const auto& value) { note_parameter(kernel, 0, &value, sizeof value); };
  const float* const address = reinterpret_cast<const float*>(0x7ffd'1234'5678);
  note(address);
  CHECK(kernel.largest_word == 0);
  note(Product{address, 3, 700, 200, 1});
  CHECK(kernel.largest_word == 700);
  note(uint64_t{0x7ffd'0000'0000} + 900);  // 900, and padding
  CHECK(kernel.largest_count >= 900);
  note(1.0f);
  CHECK(kernel.largest_count < 1'000'000);
  CHECK(kernel.largest_word > 1'000'000);
}

TEST_CASE("barriers and waits are counted") {
  run({.block = 128, .grid = 3}, {}, [] {
    __syncthreads();
    __syncthreads();
  });
  CHECK(last_launch().block_barriers == 6);
  CHECK(last_launch().barrier_waits == 3 * 2 * 3);
}

}  // namespace barriers_test
