/// @file
/// mbarriers as the wrappers of common/ptx use them: phases, parities and arrivals, and each rule broken
/// once. (Bytes are in test_tma.cu, whole pipelines in test_ring.cu.)
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mbarrier.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace mbarriers_test {
namespace {

struct Storage {
  ptx::Mbarrier full[2], empty[2];
  int values[2];
};
const Shape kShape{.block = 64, .shared_bytes = sizeof(Storage)};

void prepare(Storage& shared) {
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < 2; ++slot) {
      ptx::mbarrier_init(&shared.full[slot], 1);
      ptx::mbarrier_init(&shared.empty[slot], 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
}

/// Thread 32 hands numbers to warp 0 through two slots. @return the sums that the lanes of warp 0 saw.
std::vector<int> hand_over(const Schedule& schedule, int count) {
  std::vector<int> sums(32);
  run(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    prepare(shared);
    for (int i = 0; i < count; ++i) {
      const int slot = i % 2;
      const uint32_t parity = i / 2 % 2;
      if (threadIdx.x == 32) {
        ptx::mbarrier_wait(&shared.empty[slot], parity ^ 1);
        shared.values[slot] = i;
        ptx::mbarrier_arrive(&shared.full[slot]);
      }
      if (threadIdx.x < 32) {
        ptx::mbarrier_wait(&shared.full[slot], parity);
        sums[threadIdx.x] += shared.values[slot];
        ptx::mbarrier_arrive(&shared.empty[slot]);
      }
    }
  });
  return sums;
}

/// What a kernel is blamed for that runs `body` with prepared barriers.
template <class Body>
std::string blame(const Schedule& schedule, Body&& body) {
  return failure(kShape, schedule, [&] {
    auto& shared = ladder::shared_storage<Storage>();
    prepare(shared);
    body(shared);
  });
}

template <class Body>
void check_named_always(const std::string& words, Body&& body) {
  for (const Schedule& schedule : fixed_schedules())
    CHECK_THAT(blame(schedule, body), ContainsSubstring(words));
}

}  // namespace

TEST_CASE("values go through two slots in order, on every schedule") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    for (const int count : {1, 2, 3, 7})
      REQUIRE(hand_over(schedule, count) == std::vector<int>(32, count * (count - 1) / 2));
  }
}

TEST_CASE("a wait for the parity before the first phase returns at once, one for the first phase does not") {
  for (const Schedule& schedule : all_schedules())
    REQUIRE(blame(schedule, [](Storage& shared) { ptx::mbarrier_wait(&shared.full[0], 1); }) == "");
  check_named_always("in mbarrier_wait for full[1], phase of parity 0",
                     [](Storage& shared) { ptx::mbarrier_wait(&shared.full[1], 0); });
}

TEST_CASE("who arrived and who did not is said") {
  const std::string text = blame({}, [](Storage& shared) {
    if (threadIdx.x < 31) ptx::mbarrier_arrive(&shared.empty[1]);
    if (threadIdx.x == 40) ptx::mbarrier_wait(&shared.empty[1], 0);
  });
  CHECK_THAT(text, ContainsSubstring("warp 1 lane 8 waits at test_mbarriers.cu:"));
  CHECK_THAT(text, ContainsSubstring(
                       "1 of 32 arrivals missing; arrived: warp 0 (mbarrier_arrive at test_mbarriers.cu:"));
  CHECK_THAT(text, ContainsSubstring("x31"));
}

TEST_CASE("where nobody is left who could arrive, it is said how many warps the block has") {
  const auto those_wait = [](unsigned threads) {
    return blame({}, [=](Storage& shared) {
      if (threadIdx.x < threads) ptx::mbarrier_wait(&shared.full[0], 0);
    });
  };
  const std::string nobody = "no thread has waited for empty[0], which comes before an arrival here; ";
  CHECK_THAT(those_wait(64),
             ContainsSubstring(nobody + "all threads of the block, which has 2 warps, wait here\n"));
  CHECK_THAT(those_wait(32),
             ContainsSubstring(nobody + "all other threads of the block, which has 2 warps, have exited\n"));
}

TEST_CASE("of neighbouring warps that wait with one lane each, the lane is named once if it is the same") {
  const auto lanes_wait = [](unsigned lane_of_the_last) {
    const Shape shape{.block = 160, .shared_bytes = sizeof(Storage)};
    return failure(shape, {}, [&] {
      auto& shared = ladder::shared_storage<Storage>();
      prepare(shared);
      const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      if (warp < 4 && lane == (warp < 3 ? 5 : lane_of_the_last)) ptx::mbarrier_wait(&shared.full[0], 0);
    });
  };
  CHECK_THAT(lanes_wait(5), ContainsSubstring("deadlock: warps 0-3 lane 5 wait at test_mbarriers.cu:"));
  CHECK_THAT(lanes_wait(6),
             ContainsSubstring("deadlock: warps 0-2 lane 5, warp 3 lane 6 wait at test_mbarriers.cu:"));
}

TEST_CASE("an arrival too many is named") {
  check_named_always("mbarrier_arrive: more arrivals than expected at full[0]", [](Storage& shared) {
    // The bytes keep the phase open.
    if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
    __syncthreads();
    if (threadIdx.x == 1) ptx::mbarrier_arrive(&shared.full[0]);
  });
}

TEST_CASE("a thread that expects bytes before it waits for the slot is told so") {
  check_named_always(
      "and must wait for empty[0] before it does so again; it waited last for empty[1], of another slot: "
      "does the "
      "arrival (test_mbarriers.cu:",
      [](Storage& shared) {
        for (int i = 0; i < 3 && threadIdx.x == 0; ++i) {
          ptx::mbarrier_arrive_expect_bytes(&shared.full[i % 2], 16);
          ptx::mbarrier_wait(&shared.empty[i % 2], 1);
        }
      });
}

TEST_CASE("a thread that waits for the slot which it has yet to release is told so, and only of it") {
  const auto body = [] {
    auto& shared = ladder::shared_storage<Storage>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&shared.full[0], 1);
      ptx::mbarrier_init(&shared.empty[0], 2);
      ptx::fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
    ptx::mbarrier_wait(&shared.full[0], 0);
    if (threadIdx.x == 128) ptx::mbarrier_arrive(&shared.empty[0]);
    if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.empty[0], 0);  // before its arrival
    if (threadIdx.x > 0) ptx::mbarrier_wait(&shared.full[0], 1);
  };
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure({.block = 256, .shared_bytes = sizeof(Storage)}, schedule, body);
    CHECK_THAT(text, ContainsSubstring("\n  only warp 4 lane 0 arrived (test_mbarriers.cu:"));
    CHECK_THAT(text, ContainsSubstring(
                         "); warps 0-3 waited for full[0], and have not arrived here; warp 0 lane 0 of "
                         "these waits here, for the arrival that it owes itself"));
  }
}

TEST_CASE("of an arrival too many it is said what the phase waits for, and what the thread waited for") {
  check_named_always("count 1)\n  the thread arrived in this phase before, at test_mbarriers.cu:",
                     [](Storage& shared) {
                       if (threadIdx.x != 0) return;
                       ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                       ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                     });
  check_named_always(
      " without a wait between: an arrive.expect_tx is an arrival, too: should the phase have one",
      [](Storage& shared) {
        if (threadIdx.x != 0) return;
        ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
        ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 32);
      });
  check_named_always("waits for 16 bytes; no thread waits for it", [](Storage& shared) {
    if (threadIdx.x != 0) return;
    ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
    ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
  });
  check_named_always("the thread has waited for no mbarrier", [](Storage& shared) {
    if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
    __syncthreads();
    if (threadIdx.x == 33) ptx::mbarrier_arrive(&shared.full[0]);
  });
  check_named_always(
      "count 1)\n  lane 0 of the same warp arrived in this phase before, at test_mbarriers.cu:",
      [](Storage& shared) {
        if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
        __syncthreads();
        if (threadIdx.x == 1) ptx::mbarrier_arrive(&shared.full[0]);
      });
  check_named_always("which was in its first phase and let it pass: did its position move on",
                     [](Storage& shared) {
                       if (threadIdx.x != 0) return;
                       for (int i = 0; i < 2; ++i) {  // always the first slot, on the first lap
                         ptx::mbarrier_wait(&shared.empty[0], 1);
                         ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                       }
                     });
  check_named_always(": does the arrival (test_mbarriers.cu:", [](Storage& shared) {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
      ptx::mbarrier_wait(&shared.empty[0], 1);
    }
  });
  // A count that is too low: the second of those who release a slot ends the next phase.
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = blame(schedule, [](Storage& shared) {
      if (threadIdx.x == 0) {
        ptx::mbarrier_init(&shared.empty[0], 1);
      }
      __syncthreads();
      if (threadIdx.x == 1) ptx::mbarrier_arrive(&shared.empty[0]);
      __syncthreads();
      if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.empty[0], 0);
      if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
      __syncthreads();
      if (threadIdx.x == 33) ptx::mbarrier_arrive(&shared.empty[0]);
      __syncthreads();
      if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.empty[0], 1);
      if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
    });
    CHECK_THAT(text, ContainsSubstring("more arrivals than expected at full[0]"));
    CHECK_THAT(text, ContainsSubstring("\n  the count of empty[0], for which the thread waited last, is too "
                                       "small; different threads ended the last two: more arrive than the "
                                       "count of 1 at test_mbarriers.cu:"));
    CHECK_THAT(text, ContainsSubstring("\n  its last phase ended with the arrivals of warp 1 ("));
  }
}

TEST_CASE("of an arrival too many the wait is named that parity 1 let pass, of this barrier or another") {
  struct Plain {
    ptx::Mbarrier ready, taken;
  };
  const auto run = [](const Schedule& schedule, ptx::Mbarrier Plain::*waits_for) {
    return failure({.block = 32, .shared_bytes = sizeof(Plain)}, schedule, [=] {
      auto& smem = ladder::shared_storage<Plain>();
      if (threadIdx.x != 0) return;
      ptx::mbarrier_init(&smem.ready, 1);
      ptx::mbarrier_init(&smem.taken, 1);
      ptx::fence_mbarrier_init();
      for (int i = 0; i < 2; ++i) {
        ptx::mbarrier_arrive_expect_bytes(&smem.ready, 16);
        ptx::mbarrier_wait(&(smem.*waits_for), 1);
      }
    });
  };
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string itself = run(schedule, &Plain::ready), other = run(schedule, &Plain::taken);
    CHECK_THAT(itself, ContainsSubstring("; its wait there since then (test_mbarriers.cu:"));
    CHECK_THAT(itself,
               ContainsSubstring(") had parity 1, which passes before the first phase has ended: should "
                                 "it have been parity 0?\n"));
    CHECK_THAT(other, ContainsSubstring("count 1) with parity 1 (test_mbarriers.cu:"));
    CHECK_THAT(other, ContainsSubstring("), which passes before the first phase has ended: should its parity "
                                        "have flipped?\n"));
  }
}

TEST_CASE("a count that is too low is told from those who ended two phases") {
  check_named_always("ended before; different threads ended the last two: more arrive than the count of 1",
                     [](Storage& shared) {
                       if (threadIdx.x == 0 || threadIdx.x == 33) ptx::mbarrier_arrive(&shared.full[0]);
                       __syncthreads();
                       if (threadIdx.x == 5) ptx::mbarrier_wait(&shared.full[0], 0);
                     });
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = blame(schedule, [&](Storage& shared) {
      if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
      __syncthreads();
      if (threadIdx.x == 33) ptx::mbarrier_arrive(&shared.full[0]);
      __syncthreads();
      if (threadIdx.x == 40) ptx::mbarrier_wait(&shared.full[0], 1);
      if (threadIdx.x == 40) ptx::mbarrier_arrive_expect_bytes(&shared.full[1], 16);
      __syncthreads();
      if (threadIdx.x == 50) ptx::mbarrier_wait(&shared.full[0], 1);
      if (threadIdx.x == 50) ptx::mbarrier_arrive(&shared.full[1]);
    });
    CHECK_THAT(text, ContainsSubstring("has had all arrivals, of warp 1 (mbarrier_arrive_expect_bytes at "));
    CHECK_THAT(text, ContainsSubstring(", and the phase before with those of warp 0 (mbarrier_arrive at "));
    CHECK_THAT(text,
               ContainsSubstring("different threads ended the last two: more arrive than the count of "));
  }
}

TEST_CASE("barriers of a pipeline are named with the line that initialises it") {
  struct OnePipeline {
    ladder::Pipeline<1> pipe;
  };
  unsigned line = 0;
  const std::string text = failure({.block = 32, .shared_bytes = sizeof(OnePipeline)}, {}, [&] {
    auto& shared = ladder::shared_storage<OnePipeline>();
    if (threadIdx.x == 0) shared.pipe.init(1, 2), line = __LINE__;
    __syncthreads();
    ladder::Consumer<1>(shared.pipe).consumer_wait();
  });
  CHECK_THAT(text, ContainsSubstring(
                       "pipe.full[0] (initialised at test_mbarriers.cu:" + std::to_string(line) + ","));
}

TEST_CASE("a waiting thread that two phases overtake is named") {
  check_named_always("phase 0 ended with the arrivals of warp 1 (mbarrier_arrive at test_mbarriers.cu:",
                     [](Storage& shared) {
                       if (threadIdx.x == 5) {
                         ptx::mbarrier_wait(&shared.full[0], 0);
                       } else if (threadIdx.x == 40) {
                         for (int i = 0; i < 100; ++i) ptx::mbarrier_wait(&shared.empty[0], 1);
                         ptx::mbarrier_wait(&shared.empty[1], 0);
                         ptx::mbarrier_arrive(&shared.full[0]);
                         ptx::mbarrier_arrive(&shared.full[0]);
                       } else if (threadIdx.x < 33) {
                         ptx::mbarrier_arrive(&shared.empty[1]);
                       }
                     });
  check_named_always("the barrier went on by two phases before the thread looked again", [](Storage& shared) {
    if (threadIdx.x == 5) {
      ptx::mbarrier_wait(&shared.full[0], 0);
    } else if (threadIdx.x == 40) {
      // Long after thread 5 has begun to wait.
      for (int i = 0; i < 100; ++i) ptx::mbarrier_wait(&shared.empty[0], 1);
      ptx::mbarrier_wait(&shared.empty[1], 0);
      ptx::mbarrier_arrive(&shared.full[0]);
      ptx::mbarrier_arrive(&shared.full[0]);
    } else if (threadIdx.x < 33 && threadIdx.x != 5) {
      ptx::mbarrier_arrive(&shared.empty[1]);
    }
  });
}

TEST_CASE("it is said how many phases overtake a waiting thread") {
  CHECK_THAT(blame(Schedule{},
                   [](Storage& shared) {
                     if (threadIdx.x == 5) {
                       ptx::mbarrier_wait(&shared.full[0], 0);
                     } else if (threadIdx.x == 40) {
                       for (int i = 0; i < 100; ++i) ptx::mbarrier_wait(&shared.empty[0], 1);
                       for (int i = 0; i < 5; ++i) ptx::mbarrier_arrive(&shared.full[0]);
                     }
                   }),
             ContainsSubstring("the barrier went on by 5 phases before the thread looked again"));
}

TEST_CASE("a try says whether a phase has completed") {
  for (const Schedule& schedule : all_schedules()) {
    bool was_early = false;
    REQUIRE(blame(schedule, [&](Storage& shared) {
              if (threadIdx.x == 0) {
                was_early = ptx::mbarrier_try_wait(&shared.full[0], 0);
                ptx::mbarrier_arrive(&shared.full[0]);
              }
              while (!ptx::mbarrier_try_wait(&shared.full[0], 0)) {
              }
            }) == "");
    CHECK_FALSE(was_early);
  }
}

TEST_CASE("where groups wait for each other from the start, a deadlock begins with that") {
  struct Turns {
    ptx::Mbarrier turn[2], done;
  };
  for (const bool has_first : {true, false}) {
    for (const Schedule& schedule : fixed_schedules()) {
      const std::string text = failure({.block = 96, .shared_bytes = sizeof(Turns)}, schedule, [&] {
        auto& shared = ladder::shared_storage<Turns>();
        const unsigned warp = threadIdx.x / 32;
        if (threadIdx.x == 0) {
          for (ptx::Mbarrier& turn : shared.turn) ptx::mbarrier_init(&turn, 32);
          ptx::mbarrier_init(&shared.done, 64);
        }
        __syncthreads();
        if (warp == 2) {
          ptx::mbarrier_wait(&shared.done, 0);
          return;
        }
        ptx::mbarrier_wait(&shared.turn[warp], has_first && warp == 0);
        ptx::mbarrier_arrive(&shared.turn[1 - warp]);
        ptx::mbarrier_arrive(&shared.done);
      });
      if (has_first)
        CHECK(text == "");
      else
        CHECK_THAT(text, ContainsSubstring("deadlock: warp 0 waits at test_mbarriers.cu:") &&
                             ContainsSubstring(
                                 " for turn[0], warp 1 for turn[1]: nobody has ever arrived at any of "
                                 "these\n  if only those who wait arrive there, they wait for each other"));
    }
  }
}

TEST_CASE("a deadlock says which phases a thread has missed") {
  check_named_always("for full[0], phase of parity 0: it came too late, and has not seen phases 0 to 1 end",
                     [](Storage& shared) {
                       if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
                       if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
                       __syncthreads();
                       if (threadIdx.x == 7) ptx::mbarrier_wait(&shared.full[0], 0);
                     });
}

TEST_CASE("a deadlock begins with the barrier that all wait for in the end, and why its phase does not end") {
  // Thread 33 waits for thread 32, which waits for warp 0, of which one thread has exited.
  check_named_always("deadlock: warp 1 lane 0 waits at test_mbarriers.cu:", [](Storage& shared) {
    if (threadIdx.x < 32) ptx::mbarrier_arrive(&shared.empty[0]);
    if (threadIdx.x == 33) ptx::mbarrier_wait(&shared.full[0], 0);
    if (threadIdx.x != 32) return;
    ptx::mbarrier_wait(&shared.empty[0], 0);
    ptx::mbarrier_wait(&shared.empty[0], 1);
    ptx::mbarrier_arrive(&shared.full[0]);
  });
  check_named_always(
      "for empty[0], phase 1: 32 of 32 arrivals missing\n  warp 0 arrived in the phase before (",
      [](Storage& shared) {
        if (threadIdx.x < 32) ptx::mbarrier_arrive(&shared.empty[0]);
        if (threadIdx.x != 32) return;
        ptx::mbarrier_wait(&shared.empty[0], 0);
        ptx::mbarrier_wait(&shared.empty[0], 1);
      });
  check_named_always(
      "), and has exited: it released once, and warp 1 lane 0 waits for one more: is an arrival "
      "missing, or a wait too many?\n",
      [](Storage& shared) {
        if (threadIdx.x < 32) ptx::mbarrier_arrive(&shared.empty[0]);
        if (threadIdx.x != 32) return;
        ptx::mbarrier_wait(&shared.empty[0], 0);
        ptx::mbarrier_wait(&shared.empty[0], 1);
      });
  check_named_always("phase 0: 16 of 16 bytes missing\n  16 bytes were expected (test_mbarriers.cu:",
                     [](Storage& shared) {
                       if (threadIdx.x != 0) return;
                       ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                       ptx::mbarrier_wait(&shared.full[0], 0);
                     });
  check_named_always(
      "wrong parity, 1, or an arrival too early: warp 0 lane 0 did not wait for phase 0, of parity 0, which "
      "has ended with the arrivals of warp 0 (mbarrier_arrive at ",
      [](Storage& shared) {
        if (threadIdx.x != 0) return;
        ptx::mbarrier_arrive(&shared.full[0]);
        ptx::mbarrier_wait(&shared.full[0], 1);
      });
  check_named_always("wrong parity, 0: warp 0 lane 0 must wait for phase 1, of parity 1, which has ended",
                     [](Storage& shared) {
                       if (threadIdx.x != 0) return;
                       ptx::mbarrier_arrive(&shared.full[0]);
                       ptx::mbarrier_wait(&shared.full[0], 0);
                       ptx::mbarrier_arrive(&shared.full[0]);
                       ptx::mbarrier_wait(&shared.full[0], 0);
                     });
}

TEST_CASE("a slot that is released before it was filled is told from a wrong parity") {
  // Thread 32 fills; lane 0 of warp 0 alone releases each slot, before it has waited.
  const auto reinitialise = [](Storage& shared) {
    if (threadIdx.x == 0) ptx::mbarrier_init(&shared.empty[0], 1);
    __syncthreads();
  };
  check_named_always("\n  empty[0] was released too early, by warp 0 (mbarrier_arrive at test_mbarriers.cu:",
                     [&](Storage& shared) {
                       reinitialise(shared);
                       if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.empty[0]);
                       __syncthreads();
                       if (threadIdx.x == 32) ptx::mbarrier_wait(&shared.empty[0], 1);
                       if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.full[0], 0);
                     });
  check_named_always("\n  empty[0] was released too early, by warp 0 (mbarrier_arrive at test_mbarriers.cu:",
                     [&](Storage& shared) {
                       reinitialise(shared);
                       if (threadIdx.x == 32) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                       if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.empty[0]);
                       __syncthreads();
                       if (threadIdx.x == 32) ptx::mbarrier_wait(&shared.empty[0], 0);
                       if (threadIdx.x == 32) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                     });
}

TEST_CASE("a deadlock at the barrier of another pipeline, or of others, says so") {
  // Warp 0 releases empty[0], and waits for it, too; it should wait for another slot's, and fill that.
  struct Two {
    ladder::Pipeline<1> first, second;
  };
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure({.block = 96, .shared_bytes = sizeof(Two)}, schedule, [] {
      auto& shared = ladder::shared_storage<Two>();
      if (threadIdx.x == 0) shared.first.init(1, 1), shared.second.init(1, 1);  // on one line, as in a loop
      __syncthreads();
      if (threadIdx.x == 0) {
        ladder::Consumer<1> consumer(shared.first);
        ladder::Producer<1> producer(shared.first);
        consumer.consumer_wait();
        consumer.consumer_release();
        __syncwarp(1);
        producer.producer_acquire();
      } else if (threadIdx.x == 32) {
        ladder::Producer<1> producer(shared.first);
        producer.producer_acquire();
        producer.producer_commit();
      } else if (threadIdx.x == 64) {
        ladder::Consumer<1>(shared.second).consumer_wait();
      }
    });
    CHECK_THAT(text, ContainsSubstring("\n  warp 0 lane 0 releases ") &&
                         ContainsSubstring(" itself; nobody has ever arrived at ") &&
                         ContainsSubstring(", for which warp 2 lane 0 waits: is this the wrong pipeline?"));
  }
  check_named_always(
      "did not wait for phases 0 to 1, warp 1 lane 1 did for some: is this slot, at this step, for others?",
      [](Storage& shared) {
        if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
        __syncthreads();
        if (threadIdx.x == 33) ptx::mbarrier_wait(&shared.full[0], 0);
        __syncthreads();
        if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
        __syncthreads();
        if (threadIdx.x == 5) ptx::mbarrier_wait(&shared.full[0], 0);
      });
}

TEST_CASE("who arrives where one thread alone should, and who has passed at once, are named") {
  check_named_always("count 1)\n  warp 0 lane 0 and warp 1 lane 0 both arrive at test_mbarriers.cu:",
                     [](Storage& shared) {
                       for (unsigned warp = 0; warp < 2; ++warp) {
                         if (threadIdx.x == 32 * warp) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
                         __syncthreads();
                       }
                     });
  check_named_always(
      ") has parity 1, which passes before the first phase has ended\n  its phase 0 has had all",
      [](Storage& shared) {
        if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
        if (threadIdx.x == 33) ptx::mbarrier_wait(&shared.full[0], 1);
        __syncthreads();
        if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 16);
      });
}

TEST_CASE("an exit is blamed only on those who may be missing") {
  for (const bool has_come : {true, false}) {
    for (const Schedule& schedule : fixed_schedules()) {
      const std::string text = failure({.block = 96, .shared_bytes = sizeof(Storage)}, schedule, [&] {
        auto& shared = ladder::shared_storage<Storage>();
        prepare(shared);
        const unsigned warp = threadIdx.x / 32;
        if (warp == 2) {  // without a role, or with a part of it
          if (has_come && threadIdx.x == 64) ptx::mbarrier_arrive(&shared.empty[0]);
          return;
        }
        if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.empty[0]);
        ptx::mbarrier_wait(&shared.empty[0], 0);
      });
      CHECK_THAT(text,
                 ContainsSubstring(has_come ? "30 of 32 arrivals missing" : "31 of 32 arrivals missing"));
      CHECK((text.find("; warp 2 has exited") != text.npos) == has_come);
    }
  }
}

TEST_CASE("of a slot that nobody has come to, it is said at which others they arrived, and how often") {
  for (const Schedule& schedule : fixed_schedules()) {
    CHECK_THAT(
        blame(schedule,
              [](Storage& shared) {
                if (threadIdx.x < 32) ptx::mbarrier_arrive(&shared.empty[1]);
                if (threadIdx.x >= 32) ptx::mbarrier_wait(&shared.empty[0], 0);
              }),
        ContainsSubstring("of 32 arrivals missing\n  nobody has ever arrived there; warp 0 arrived once "
                          "at empty[1] (test_mbarriers.cu:") &&
            !ContainsSubstring("is the index"));
    CHECK_THAT(blame(schedule,
                     [](Storage& shared) {
                       for (int i = 0; i < 3 && threadIdx.x == 0; ++i) ptx::mbarrier_arrive(&shared.full[1]);
                       if (threadIdx.x >= 32) ptx::mbarrier_wait(&shared.full[0], 0);
                     }),
               ContainsSubstring("; warp 0 lane 0 arrived 3 times at full[1] (test_mbarriers.cu:") &&
                   !ContainsSubstring("is the index"));
  }
}

TEST_CASE("who goes round a ring, and releases one of its slots alone, is asked about the index") {
  for (const bool is_wrong : {false, true})
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = blame(schedule, [=](Storage& shared) {
        for (int step = 0; step < 3; ++step) {
          const int slot = step % 2;
          const uint32_t parity = step / 2 % 2;
          if (threadIdx.x == 32) {
            ptx::mbarrier_wait(&shared.empty[slot], parity ^ 1);
            ptx::mbarrier_arrive(&shared.full[slot]);
          }
          if (threadIdx.x >= 32) continue;
          ptx::mbarrier_wait(&shared.full[slot], parity);
          ptx::mbarrier_arrive(&shared.empty[is_wrong ? 1 : slot]);
        }
      });
      // Where the loader is late the wrong slot is waited for first: it was released before it was full.
      if (is_wrong)
        CHECK_THAT(text, (ContainsSubstring(" for empty[0], phase 0: 32 of 32 arrivals missing\n  nobody has "
                                            "ever arrived there; warp 0 arrived twice at empty[1] "
                                            "(test_mbarriers.cu:") &&
                          ContainsSubstring("): is the index there that of the slot?\n")) ||
                             ContainsSubstring(
                                 "\n  empty[1] was released too early, by warp 0 (mbarrier_arrive at "));
      else
        CHECK(text == "");
    }
}

TEST_CASE("a Producer made of the pipeline that its threads read is asked about, and a wrong end is not") {
  // Warp 2 fills `in`, warps 0-1 read it and fill `out`, warp 3 reads that.
  struct Two {
    ladder::Pipeline<2> in, out;
  };
  enum class Mistake { none, wrong_pipeline, releases_at_full };
  int asked = 0;
  for (const Mistake mistake : {Mistake::none, Mistake::wrong_pipeline, Mistake::releases_at_full})
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = failure({.block = 128, .shared_bytes = sizeof(Two)}, schedule, [=] {
        auto& shared = ladder::shared_storage<Two>();
        if (threadIdx.x == 0) {
          shared.in.init(1, 2);
          shared.out.init(2, 1);
        }
        __syncthreads();
        const unsigned warp = threadIdx.x / 32;
        if (threadIdx.x % 32) return;
        ladder::Consumer<2> reader(shared.in), storer(shared.out);
        ladder::Producer<2> loader(shared.in),
            writer(mistake == Mistake::wrong_pipeline ? shared.in : shared.out);
        for (int step = 0; step < 6; ++step) {
          if (warp < 2) {
            reader.consumer_wait();
            if (mistake == Mistake::releases_at_full)
              ptx::mbarrier_arrive(&shared.in.full[step % 2]);
            else
              reader.consumer_release();
            if (step % 3 < 2) continue;
            writer.producer_acquire();
            writer.producer_commit();
          } else if (warp == 2) {
            loader.producer_acquire();
            loader.producer_commit();
          } else if (step < 2) {
            storer.consumer_wait();
            storer.consumer_release();
          }
        }
      });
      if (mistake == Mistake::none) CHECK(text == "");
      if (mistake == Mistake::releases_at_full) CHECK_THAT(text, !ContainsSubstring("wrong pipeline?"));
      if (mistake != Mistake::wrong_pipeline) continue;
      CHECK_THAT(text, ContainsSubstring("nobody has ever arrived at out.full") &&
                           ContainsSubstring("wrong pipeline?\n"));
      if (text.find("more arrivals than expected at in.full") == text.npos &&
          text.find("went on by two phases") == text.npos)
        continue;  // a deadlock, which may speak of the releases
      ++asked;
      CHECK_THAT(text, ContainsSubstring(" reads what warp 2 lane 0 fills at in.full (test_mbarriers.cu:") &&
                           ContainsSubstring("), and arrives there, too (test_mbarriers.cu:") &&
                           ContainsSubstring("; nobody has ever arrived at out.full: is a Producer made of "
                                             "the wrong pipeline?\n"));
    }
  CHECK(asked > 0);
}

TEST_CASE("one thread alone should expect an inbox's bytes, though it waited elsewhere before") {
  struct Inbox {
    ptx::Mbarrier met, inbox;
  };
  for (const unsigned every : {1u, 32u, 64u})  // each lane, lane 0 of each warp, or one thread
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = failure({.block = 64, .shared_bytes = sizeof(Inbox)}, schedule, [=] {
        auto& shared = ladder::shared_storage<Inbox>();
        if (threadIdx.x == 0) {
          ptx::mbarrier_init(&shared.met, 64);
          ptx::mbarrier_init(&shared.inbox, 1);
        }
        __syncthreads();
        ptx::mbarrier_arrive(&shared.met);
        ptx::mbarrier_wait(&shared.met, 0);
        if (threadIdx.x % every == 0) ptx::mbarrier_arrive_expect_bytes(&shared.inbox, 16);
      });
      const std::string words = every == 32   ? " both arrive at test_mbarriers.cu:"
                                : every == 64 ? "16 bytes that were expected have not come"
                                              : ": should one thread ";
      CHECK_THAT(text, ContainsSubstring(words));
      CHECK((text.find("alone come here?\n") != text.npos) == (every < 64));
    }
}

TEST_CASE("two roles that expect bytes where the count is 1 are asked whether it should be 2") {
  struct Inbox {
    ptx::Mbarrier full;
  };
  for (const unsigned count : {1u, 2u})
    for (const Schedule& schedule : all_schedules()) {
      const std::string text = failure({.block = 96, .shared_bytes = sizeof(Inbox)}, schedule, [=] {
        auto& shared = ladder::shared_storage<Inbox>();
        if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full, count);
        __syncthreads();
        if (threadIdx.x == 32) ptx::mbarrier_arrive_expect_bytes(&shared.full, 16);
        if (threadIdx.x == 64) ptx::mbarrier_arrive_expect_bytes(&shared.full, 32);
      });
      CHECK((text.find(" both arrive, at test_mbarriers.cu:") != text.npos) == (count == 1));
      CHECK((text.find(": should the count be 2?\n") != text.npos) == (count == 1));
      CHECK(text.find("alone come here?") == text.npos);
    }
}

namespace {

/// Warp 0 fills a ring of three slots, and warps 1 and 2 take turns at reading it. What goes wrong is a bit.
enum RingMistake : unsigned {
  kNoRelease = 1,
  kOneLaneReleases = 2,
  kOneReaderReleases = 4,
  kFirstWaitForEmpty = 8,
  kLapsOfTheReader = 16,
  kFillerDoesNotFlip = 32,
  kOneLaneEach = 64  ///< no mistake: one thread of each warp does all
};

std::string ring_of_two_readers(const Schedule& schedule, unsigned mistakes) {
  struct Ring {
    ptx::Mbarrier full[3];
    ptx::Mbarrier empty[3];
  };
  return failure({.block = 96, .shared_bytes = sizeof(Ring)}, schedule, [=] {
    auto& ring = ladder::shared_storage<Ring>();
    if (threadIdx.x == 0)
      for (int slot = 0; slot < 3; ++slot) {
        ptx::mbarrier_init(&ring.full[slot], mistakes & kOneLaneEach ? 1 : 32);
        ptx::mbarrier_init(&ring.empty[slot], mistakes & kOneLaneEach ? 1 : 32);
      }
    __syncthreads();
    if (mistakes & kOneLaneEach && threadIdx.x % 32) return;
    const int warp = threadIdx.x / 32;
    for (int tile = 0; tile < 14; ++tile) {
      const int slot = tile % 3, lap = tile / 3;
      if (warp == 0) {
        const bool parity = mistakes & kFirstWaitForEmpty ? lap % 2 : (lap + 1) % 2;
        ptx::mbarrier_wait(&ring.empty[slot], mistakes & kFillerDoesNotFlip ? 1 : parity);
        ptx::mbarrier_arrive(&ring.full[slot]);
      } else if (tile % 2 == warp - 1) {
        ptx::mbarrier_wait(&ring.full[slot], mistakes & kLapsOfTheReader ? tile / 2 / 3 % 2 : lap % 2);
        if (mistakes & kNoRelease) continue;
        if (mistakes & kOneLaneReleases && threadIdx.x % 32) continue;
        if (mistakes & kOneReaderReleases && warp == 2) continue;
        ptx::mbarrier_arrive(&ring.empty[slot]);
      }
    }
  });
}

}  // namespace

TEST_CASE("a missing release is not taken for a wrong parity where readers take turns") {
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(ring_of_two_readers(schedule, 0) == "");
    const auto check_ends_at = [&](unsigned mistake, const char* where) {
      const std::string text = ring_of_two_readers(schedule, mistake);
      CHECK_THAT(text, ContainsSubstring("deadlock: warp 0 waits at test_mbarriers.cu:"));
      CHECK_THAT(text, ContainsSubstring(where));
      for (const char* claim : {"wrong parity", "has not waited for", "fewer steps"})
        CHECK_THAT(text, !ContainsSubstring(claim));
    };
    check_ends_at(kNoRelease, " for ring.empty[0], phase 0: 32 of 32 arrivals missing\n  nobody has ever");
    check_ends_at(kOneLaneReleases, " for ring.empty[0], phase 0: 31 of 32 arrivals missing\n  only warp 1");
    check_ends_at(kOneReaderReleases, " for ring.empty[1], phase 0: 32 of 32 arrivals missing");
  }
}

TEST_CASE("where all have arrived who ever did, the count is asked about, unless others wait elsewhere") {
  const auto run = [](const Schedule& schedule, bool waits_elsewhere) {
    return failure({.block = 96, .shared_bytes = sizeof(ptx::Mbarrier)}, schedule, [=] {
      auto& taken = ladder::shared_storage<ptx::Mbarrier>();
      if (threadIdx.x == 0) ptx::mbarrier_init(&taken, 32);
      __syncthreads();
      if (threadIdx.x == 32) ptx::mbarrier_arrive(&taken);
      if (threadIdx.x >= 64 && waits_elsewhere) named_barrier_sync(3, 64, Location::current());
      ptx::mbarrier_wait(&taken, 0);
    });
  };
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK_THAT(
        run(schedule, false),
        ContainsSubstring("31 of 32 arrivals missing\n  only warp 1 lane 0 arrived (test_mbarriers.cu:"));
    CHECK_THAT(run(schedule, false),
               ContainsSubstring("), and no other thread ever has: is the count of 32 (test_mbarriers.cu:"));
    const std::string elsewhere = run(schedule, true);
    CHECK_THAT(elsewhere, ContainsSubstring("; warp 2 now waits at test_mbarriers.cu:"));
    CHECK_THAT(elsewhere, ContainsSubstring(" in named barrier 3\n"));
    CHECK_THAT(elsewhere, !ContainsSubstring("too large"));
  }
}

TEST_CASE(
    "who waits in a barrier of some warps, while others come to one of their own, is the end of the chain") {
  const auto run = [](const Schedule& schedule, unsigned passes_to) {
    return failure({.block = 128, .shared_bytes = sizeof(ptx::Mbarrier)}, schedule, [=] {
      auto& released = ladder::shared_storage<ptx::Mbarrier>();
      if (threadIdx.x == 0) ptx::mbarrier_init(&released, 2);
      __syncthreads();
      const unsigned me = threadIdx.x / 64;
      if (me == 1) named_barrier_arrive(passes_to, 128, Location::current());
      if (me == 0) named_barrier_sync(1, 128, Location::current());
      if (me == 0) named_barrier_arrive(2, 128, Location::current());
      if (me == 1) named_barrier_sync(2, 128, Location::current());
      if (threadIdx.x % 64 == 0) ptx::mbarrier_arrive(&released);
      if (me == 1) ptx::mbarrier_wait(&released, 0);
    });
  };
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(run(schedule, 1) == "");
    const std::string text = run(schedule, 2);
    CHECK_THAT(text, ContainsSubstring("deadlock: warps 0-1 wait at test_mbarriers.cu:"));
    CHECK_THAT(text,
               ContainsSubstring(" in named barrier 1: 64 of 128 threads arrived\n  no other thread has "
                                 "ever arrived there; only warps 2-3 ever arrived at named barrier 2, "
                                 "for 128 threads (test_mbarriers.cu:"));
    CHECK_THAT(text, ContainsSubstring("): should they arrive at 1, or those who wait at 2?\n"));
  }
}

template <int kSlots>
struct Handed {
  ladder::Pipeline<kSlots> pipe;
  int value[kSlots];
};

TEST_CASE("two warpgroups that read a slot which one of them releases are asked whose it is") {
  if (!instrumented()) SKIP("races are seen in the instrumented build");
  const auto run = [](const Schedule& schedule, int count, bool both_release) {
    std::vector<int> sums(2);
    return failure({.block = 384, .shared_bytes = sizeof(Handed<2>)}, schedule, [&] {
      auto& smem = ladder::shared_storage<Handed<2>>();
      if (threadIdx.x == 0) smem.pipe.init(1, count);
      __syncthreads();
      if (threadIdx.x % 128) return;
      const unsigned group = threadIdx.x / 128;
      ladder::Producer fill(smem.pipe);
      ladder::Consumer read(smem.pipe);
      for (int step = 0; step < 8; ++step) {
        if (group == 0) {
          smem.value[fill.producer_acquire()] = step;
          fill.producer_commit();
          continue;
        }
        sums[group - 1] += smem.value[read.consumer_wait()];
        read.consumer_release(group == 1 || both_release);
      }
    });
  };
  const CheckRaces checked;
  std::vector<std::string> texts;
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(run(schedule, 2, true) == "");
    texts.push_back(run(schedule, 1, false));
  }
  for (const std::string& text : texts) UNSCOPED_INFO(text);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find(" without an arrival of warps 8-11, which read: its count is 1 (test_mbarriers.cu:") !=
               text.npos &&
           text.find(
               "), as warp 4 lane 0 has: is this slot for warp 4 lane 0 alone, or must the count "
               "include both?\n") != text.npos;
  }));
}

/// Warp 1 hands the steps of some tiles to warp 0, through a ring. Whose end of the pipeline is made anew?
template <int kSlots>
std::string made_anew(const Schedule& schedule, int steps, bool producer, bool consumer) {
  return failure({.block = 64, .shared_bytes = sizeof(Handed<kSlots>)}, schedule, [&] {
    auto& smem = ladder::shared_storage<Handed<kSlots>>();
    if (threadIdx.x == 0) smem.pipe.init(32, 32);
    __syncthreads();
    constexpr int kTiles = 3;
    const auto fill = [&](auto& pipe) {
      for (int step = 0; step < steps; ++step) {
        pipe.producer_acquire();
        pipe.producer_commit();
      }
    };
    const auto empty = [&](auto& pipe) {
      for (int step = 0; step < steps; ++step) {
        pipe.consumer_wait();
        pipe.consumer_release();
      }
    };
    if (threadIdx.x >= 32 && producer) {
      for (int tile = 0; tile < kTiles; ++tile) {
        ladder::Producer pipe(smem.pipe);
        for (int step = 0; step < steps; ++step) {
          pipe.producer_acquire();
          pipe.producer_commit();
        }
      }
    } else if (threadIdx.x >= 32) {
      ladder::Producer pipe(smem.pipe);
      for (int tile = 0; tile < kTiles; ++tile) fill(pipe);
    } else if (consumer) {
      for (int tile = 0; tile < kTiles; ++tile) {
        ladder::Consumer pipe(smem.pipe);
        for (int step = 0; step < steps; ++step) {
          pipe.consumer_wait();
          pipe.consumer_release();
        }
      }
    } else {
      ladder::Consumer pipe(smem.pipe);
      for (int tile = 0; tile < kTiles; ++tile) empty(pipe);
    }
  });
}

TEST_CASE("an end of a pipeline that is made anew for each tile is named with its line") {
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    for (const int steps : {1, 2, 3, 4, 6}) CHECK(made_anew<2>(schedule, steps, false, false) == "");
    CHECK(made_anew<2>(schedule, 4, true, true) ==
          "");  // at the end of a lap that leaves parities as they were
    for (const std::string& text :
         {made_anew<3>(schedule, 4, true, false), made_anew<2>(schedule, 3, true, false),
          made_anew<1>(schedule, 3, true, false)})
      CHECK_THAT(text, ContainsSubstring(
                           " begins again at slot 0 of pipe.empty with parity 1 (test_mbarriers.cu:") &&
                           ContainsSubstring("), and the barriers have gone on: its Producer is made anew at "
                                             "test_mbarriers.cu:") &&
                           ContainsSubstring(", in each round of the loop at test_mbarriers.cu:"));
    for (const std::string& text :
         {made_anew<3>(schedule, 4, false, true), made_anew<1>(schedule, 3, false, true)})
      CHECK_THAT(
          text, ContainsSubstring(" begins again at slot 0 of pipe.full with parity 0 (test_mbarriers.cu:") &&
                    ContainsSubstring("its Consumer is made anew at test_mbarriers.cu:"));
  }
}

TEST_CASE("a ring that goes on is not told to begin again in the next block of the grid") {
  struct Storage {
    ladder::Pipeline<3> pipe;
    int value;
  };
  constexpr unsigned kGrid = 32;  // so that each of the threads that play blocks plays several
  const auto run = [](const Schedule& schedule, bool waits) {
    return failure({.block = 96, .shared_bytes = sizeof(Storage), .grid = kGrid}, schedule, [=] {
      auto& smem = ladder::shared_storage<Storage>();
      if (threadIdx.x == 0) smem.pipe.init(32, 64);
      __syncthreads();
      constexpr int kSteps = 4;  // so that the next block begins where no lap ends
      if (threadIdx.x < 32) {
        ladder::Producer pipe(smem.pipe);
        for (int step = 0; step < kSteps; ++step) pipe.producer_acquire(), pipe.producer_commit();
        return;
      }
      ladder::Consumer pipe(smem.pipe);
      const bool is_lazy = threadIdx.x >= 64 && blockIdx.x >= kGrid / 2 && !waits;
      for (int step = 0; step < kSteps; ++step) {
        if (!is_lazy) pipe.consumer_wait();
        pipe.consumer_release();
      }
    });
  };
  int failed = 0;
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    CHECK(run(schedule, true) == "");
    const std::string text = run(schedule, false);
    CAPTURE(text);
    CHECK(text.find("begins again") == std::string::npos);
    failed += text != "";
  }
  CHECK(failed > 0);  // else nothing was told at all
}

TEST_CASE("who waits twice for each release, or fills more slots than there are, holds all slots") {
  struct Ring {
    ptx::Mbarrier full[2], empty[2];
  };
  const auto run = [](const Schedule& schedule, const std::function<void(Ring&)>& body) {
    return failure({.block = 64, .shared_bytes = sizeof(Ring)}, schedule, [&] {
      Ring& ring = ladder::shared_storage<Ring>();
      if (threadIdx.x == 0)
        for (int slot = 0; slot < 2; ++slot) {
          ptx::mbarrier_init(&ring.full[slot], 32);
          ptx::mbarrier_init(&ring.empty[slot], 32);
        }
      __syncthreads();
      body(ring);
    });
  };
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    const std::string twice = run(schedule, [](Ring& ring) {
      int waits = 0;
      for (int tile = 0; tile < 6; ++tile) {
        if (threadIdx.x < 32) {
          ptx::mbarrier_wait(&ring.empty[tile % 2], (tile / 2 + 1) % 2);
          ptx::mbarrier_arrive(&ring.full[tile % 2]);
          continue;
        }
        const int slot = waits % 2;
        ptx::mbarrier_wait(&ring.full[slot], waits / 2 % 2), ++waits;
        ptx::mbarrier_wait(&ring.full[waits % 2], waits / 2 % 2), ++waits;
        ptx::mbarrier_arrive(&ring.empty[slot]);
      }
    });
    CHECK_THAT(twice, ContainsSubstring("deadlock: warp 0 waits at test_mbarriers.cu:"));
    CHECK_THAT(twice, ContainsSubstring("\n  warp 1 has waited 3 times for a slot of ring.full, and released "
                                        "once (test_mbarriers.cu:") &&
                          ContainsSubstring("), one release for two waits: it holds all 2 slots, and waits "
                                            "for one more at test_mbarriers.cu:"));
    const std::string ahead = run(schedule, [](Ring& ring) {
      if (threadIdx.x >= 32) return;
      for (int tile = 0; tile < 3; ++tile) {
        ptx::mbarrier_wait(&ring.empty[tile % 2], (tile / 2 + 1) % 2);
        ptx::mbarrier_arrive(&ring.full[tile % 2]);
      }
      ptx::mbarrier_wait(&ring.full[0], 0);
      ptx::mbarrier_arrive(&ring.empty[0]);
    });
    CHECK_THAT(ahead, ContainsSubstring("32 of 32 arrivals missing\n  nobody has ever arrived there: warp 0 "
                                        "has filled all 2 slots, and releases one only behind this wait: is "
                                        "one slot more filled ahead than there are?"));
  }
}

/// Warp 0 fills `fills` times and `waits` until all is empty; warps 1 and 2 read `reads` times each, and
/// release where `releases` says so of a step.
template <int kSlots>
std::string ring_ends(const Schedule& schedule, int fills, bool waits, std::array<int, 2> reads,
                      bool (*releases)(int step)) {
  struct Ring {
    ladder::Pipeline<kSlots> ring;
  };
  return failure({.block = 96, .shared_bytes = sizeof(Ring)}, schedule, [&] {
    auto& smem = ladder::shared_storage<Ring>();
    if (threadIdx.x == 0) smem.ring.init(32, 64);
    __syncthreads();
    if (threadIdx.x < 32) {
      ladder::Producer ring(smem.ring);
      for (int step = 0; step < fills; ++step) {
        ring.producer_acquire();
        ring.producer_commit();
      }
      if (waits) ring.wait_until_empty();
      return;
    }
    ladder::Consumer ring(smem.ring);
    for (int step = 0; step < reads[threadIdx.x / 64]; ++step) {
      ring.consumer_wait();
      if (releases(step)) ring.consumer_release();
    }
  });
}

TEST_CASE(
    "of those who have exited it is said how often they waited and released, not how many steps they made") {
  const auto always = [](int) { return true; };
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    REQUIRE(ring_ends<2>(schedule, 4, true, {4, 4}, always) == "");
    CHECK_THAT(ring_ends<2>(schedule, 4, true, {4, 4}, [](int step) { return step < 3; }),
               ContainsSubstring("), and have exited: they waited 4 times for a slot of ring.full, and "
                                 "released 3 times: is a release missing?\n"));
    CHECK_THAT(ring_ends<1>(schedule, 2, true, {2, 2}, [](int step) { return step < 1; }),
               ContainsSubstring("), and have exited: they waited twice for ring.full[0], and "
                                 "released once: is a release missing?\n"));
    CHECK_THAT(ring_ends<2>(schedule, 6, false, {4, 4}, [](int step) { return step < 3; }),
               ContainsSubstring("), and have exited: they waited 4 times for a slot of ring.full, which was "
                                 "filled 5 times, and released 3 times: do they make too few steps?\n"));
    CHECK_THAT(ring_ends<2>(schedule, 7, false, {4, 4}, always),
               ContainsSubstring("), and have exited: they waited 4 times for a slot of ring.full, and "
                                 "released 4 times, and warp 0 waits for one more: do they make too few "
                                 "steps, or warp 0 too many?\n"));
    // Two of three roles agree.
    CHECK_THAT(ring_ends<2>(schedule, 6, true, {6, 4}, always),
               ContainsSubstring(": it waited 4 times for a slot of ring.full, and released 4 times, and "
                                 "warp 1 6 times: does it make too few steps, or warp 1 too many?\n"));
    CHECK_THAT(ring_ends<2>(schedule, 4, false, {5, 5}, always),
               ContainsSubstring(": it waited 4 times for a slot of ring.empty, and arrived 4 times, and "
                                 "warps 1-2 wait for one more: does it make too few steps, or warps 1-2 too "
                                 "many?\n"));
  }
}

TEST_CASE("who arrives at the slot that comes next is asked for the index, not for one step more") {
  struct Slots {
    ptx::Mbarrier full[2], empty[2];
  };
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto run = [&](int ahead) {
      return failure({.block = 64, .shared_bytes = sizeof(Slots)}, schedule, [&] {
        auto& ring = ladder::shared_storage<Slots>();
        if (threadIdx.x == 0)
          for (int slot = 0; slot < 2; ++slot) {
            ptx::mbarrier_init(&ring.full[slot], 32);
            ptx::mbarrier_init(&ring.empty[slot], 32);
          }
        __syncthreads();
        if (threadIdx.x < 32) {
          ptx::mbarrier_wait(&ring.empty[0], 1);
          ptx::mbarrier_arrive(&ring.full[ahead]);
        } else {
          ptx::mbarrier_wait(&ring.full[0], 0);
          ptx::mbarrier_arrive(&ring.empty[0]);
        }
      });
    };
    CHECK(run(0) == "");
    const std::string report = run(1);
    CAPTURE(report);
    CHECK_THAT(report, ContainsSubstring(" has exited: it waited once for a slot of ring.empty, and arrived "
                                         "once, and warp 1 has not waited for a slot of ring.full before: "
                                         "is the index of a slot wrong?\n"));
    CHECK_THAT(report, !ContainsSubstring("for one more"));
  }
}

TEST_CASE("who waits for the next slot and has released none, or too few, is asked for the release") {
  for (const Schedule& schedule : fixed_schedules()) {
    CAPTURE(schedule.name());
    const auto never = [](int) { return false; };
    CHECK_THAT(ring_ends<1>(schedule, 3, false, {3, 3}, never),
               ContainsSubstring("\n  nobody has ever arrived there; warps 1-2 waited for ring.full[0], and "
                                 "now wait at test_mbarriers.cu:") &&
                   ContainsSubstring(" for ring.full[0]: they have waited once, released no slot, and wait "
                                     "again: is a release missing between the waits?\n"));
    CHECK_THAT(ring_ends<2>(schedule, 3, false, {3, 3}, never),
               ContainsSubstring(" for ring.full[0]: they have waited twice, released no slot, and wait "));
    CHECK_THAT(ring_ends<1>(schedule, 4, false, {4, 4}, [](int step) { return step != 1; }),
               ContainsSubstring("\n  warps 1-2 have waited twice for ring.full[0], and released once (") &&
                   ContainsSubstring("): they hold the slot, and wait for one more at test_mbarriers.cu:") &&
                   ContainsSubstring(": is a release missing, or a wait too many?\n"));
  }
}

TEST_CASE("barriers that belong to no pipeline are ends of a slot by their names") {
  for (const Schedule& schedule : all_schedules())
    CHECK_THAT(
        ring_of_two_readers(schedule, kFirstWaitForEmpty),
        ContainsSubstring(" for ring.empty[0], phase 0: 32 of 32 arrivals missing\n  the slot is new, and "
                          "empty: the first wait for it must have parity 1, and has 0"));
}

TEST_CASE(
    "a missing release is the end of the chain also where its thread waits for what nobody has come to") {
  struct Ring {
    ptx::Mbarrier full[1];
    ptx::Mbarrier empty[1];
    ptx::Mbarrier turn;
  };
  for (const Schedule& schedule : all_schedules()) {
    const std::string text = failure({.block = 96, .shared_bytes = sizeof(Ring)}, schedule, [] {
      auto& ring = ladder::shared_storage<Ring>();
      if (threadIdx.x == 0) {
        ptx::mbarrier_init(&ring.full[0], 1);
        ptx::mbarrier_init(&ring.empty[0], 1);
        ptx::mbarrier_init(&ring.turn, 1);
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        for (const int parity : {1, 0}) {
          ptx::mbarrier_wait(&ring.empty[0], parity);
          ptx::mbarrier_arrive(&ring.full[0]);
        }
      } else if (threadIdx.x == 32) {
        ptx::mbarrier_wait(&ring.full[0], 0);  // and does not release
        ptx::mbarrier_wait(&ring.turn, 0);
      } else if (threadIdx.x == 64) {
        ptx::mbarrier_wait(&ring.full[0], 1);
        ptx::mbarrier_arrive(&ring.turn);
      }
    });
    CHECK_THAT(text, ContainsSubstring("deadlock: warp 0 lane 0 waits at test_mbarriers.cu:") &&
                         ContainsSubstring(" for ring.empty[0], phase 0: 1 of 1 arrivals missing\n"));
  }
}

TEST_CASE("of two barriers that nobody has come to, the one comes first whose waiters the other needs") {
  struct Roles {
    ladder::Pipeline<2> ring;
    ladder::Pipeline<1> out;
    ptx::Mbarrier inbox;
  };
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    const std::string text = failure({.block = 128, .shared_bytes = sizeof(Roles)}, schedule, [] {
      auto& smem = ladder::shared_storage<Roles>();
      if (threadIdx.x == 0) {
        smem.ring.init(1, 2);
        smem.out.init(2, 1);
        ptx::mbarrier_init(&smem.inbox, 2);
      }
      __syncthreads();
      const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      ladder::Producer loader(smem.ring);
      ladder::Consumer computer(smem.ring);
      ladder::Consumer storer(smem.out);
      if (warp < 2) {
        computer.consumer_wait();
        __syncwarp();
        computer.consumer_release(lane == 0);
        ptx::mbarrier_wait(&smem.inbox, 0);  // before anybody has sent
        if (lane == 0) ptx::mbarrier_arrive(&smem.out.full[0]);
      } else if (warp == 2 && lane == 0) {
        for (int step = 0; step < 6; ++step) {
          loader.producer_acquire();
          loader.producer_commit();
        }
      } else if (warp == 3 && lane == 0) {
        storer.consumer_wait();
      }
      __syncwarp();
    });
    CHECK_THAT(text, ContainsSubstring("deadlock: warps 0-1 wait at test_mbarriers.cu:") &&
                         ContainsSubstring(" for inbox, phase 0: 2 of 2 arrivals missing\n"));
  }
}

TEST_CASE("a place where several threads expect bytes is said once") {
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(kShape, schedule, [] {
      auto& shared = ladder::shared_storage<Storage>();
      if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full[1], 2);
      __syncthreads();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[1], 16);
      ptx::mbarrier_wait(&shared.full[1], 0);
    });
    CHECK_THAT(text, ContainsSubstring("\n  32 bytes were expected (test_mbarriers.cu:"));
    CHECK_THAT(text, ContainsSubstring("), and none came\n") && !ContainsSubstring(") (test_mbarriers.cu:"));
  }
}

TEST_CASE("a wait that passes too early is named where its consequence is found") {
  const auto one_of_all = [](unsigned mistakes, const std::string& words) {
    std::vector<std::string> texts;
    for (const Schedule& schedule : all_schedules())
      texts.push_back(ring_of_two_readers(schedule, mistakes | kOneLaneEach));
    for (const std::string& text : texts) {
      INFO(text);
      CHECK(text.find("more arrive than the count") == text.npos);
    }
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return text.find(words) != text.npos; });
  };
  CHECK(one_of_all(kLapsOfTheReader,
                   "the wait of warp 2 lane 0 for ring.full[0] with parity 0 (test_mbarriers.cu:"));
  CHECK(one_of_all(kLapsOfTheReader,
                   ") passed too early: its slot had been filled once and emptied as often\n"));
  CHECK(one_of_all(kFillerDoesNotFlip,
                   "the wait of warp 0 lane 0 for ring.empty[0] with parity 1 (test_mbarriers.cu:"));
  CHECK(one_of_all(kFillerDoesNotFlip,
                   ") passed too early: its slot had been filled once and emptied never\n"));
}

/// Each thread of three warps arrives when a slot is filled, and a fourth warp empties it.
std::string filled_by_all(const Schedule& schedule, unsigned count, bool is_released_alone = false) {
  struct Slot {
    ladder::Pipeline<1> pipe;
  };
  return failure({.block = 128, .shared_bytes = sizeof(Slot)}, schedule, [=] {
    auto& pipe = ladder::shared_storage<Slot>().pipe;
    if (threadIdx.x == 0) pipe.init(count, is_released_alone ? 1 : 32);
    __syncthreads();
    ladder::Producer producer(pipe);
    ladder::Consumer consumer(pipe);
    for (int tile = 0; tile < 20; ++tile) {
      if (threadIdx.x < 96) {
        producer.producer_acquire();
        producer.producer_commit();
      } else {
        consumer.consumer_wait();
        consumer.consumer_release(!is_released_alone || threadIdx.x == 96);
      }
    }
  });
}

TEST_CASE("a wait that is right is not said to have passed too early where others have gone on") {
  bool names_count = false, names_release = false;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    CHECK(filled_by_all(schedule, 96) == "");
    const std::string too_few = filled_by_all(schedule, 3), alone = filled_by_all(schedule, 96, true);
    for (const std::string& text : {too_few, alone}) CHECK_THAT(text, !ContainsSubstring("too early"));
    names_count |= too_few.find("more arrive than the count of 3 at ") != too_few.npos;
    names_release |=
        alone.find("warp 3 lane 0 arrives at pipe.empty[0] (test_mbarriers.cu:") != alone.npos ||
        alone.find("warp 3 lane 0 passed this wait, and arrived at pipe.empty[0] (test_mb") != alone.npos;
  }
  CHECK(names_count);
  CHECK(names_release);
}

/// Thread 0 releases a slot before thread 1 has looked at it, which does so before the slot is filled again.
/// @param waits_again thread 1 does, when the slot has been filled three times; else it waits for nobody's
/// arrival, as others do
/// @param forgets_to_release thread 0 does, another slot, again and again
std::string released_before_all_have_looked(bool waits_again, bool forgets_to_release) {
  struct Slots {
    ladder::Pipeline<1> pipe, other;
    ptx::Mbarrier released, looked, passed, never;
  };
  return failure({.block = 96, .shared_bytes = sizeof(Slots)}, {}, [=] {
    auto& smem = ladder::shared_storage<Slots>();
    if (threadIdx.x == 0) {
      smem.pipe.init(1, 1);
      smem.other.init(1, 1);
      for (ptx::Mbarrier* barrier : {&smem.released, &smem.looked, &smem.passed, &smem.never})
        ptx::mbarrier_init(barrier, 1);
    }
    __syncthreads();
    if (threadIdx.x == 64) {
      ladder::Producer loader(smem.pipe);
      for (int step = 0; step < 3; ++step) {
        if (step == 1) ptx::mbarrier_wait(&smem.looked, 0);
        loader.producer_acquire();
        loader.producer_commit();
      }
    } else if (threadIdx.x == 32 && forgets_to_release) {
      ladder::Producer loader(smem.other);
      for (int step = 0; step < 2; ++step) {
        loader.producer_acquire();
        loader.producer_commit();
      }
    } else if (threadIdx.x == 0) {
      ladder::Consumer reader(smem.pipe), of_other(smem.other);
      for (int step = 0; step < 3; ++step) {
        reader.consumer_wait();
        reader.consumer_release();
        if (step == 0) ptx::mbarrier_arrive(&smem.released);
      }
      ptx::mbarrier_arrive(&smem.passed);
      for (int step = 0; step < 2 && forgets_to_release; ++step) of_other.consumer_wait();
      if (!waits_again && !forgets_to_release) ptx::mbarrier_wait(&smem.never, 0);
    } else if (threadIdx.x == 1) {
      ladder::Consumer reader(smem.pipe);
      ptx::mbarrier_wait(&smem.released, 0);
      reader.consumer_wait();
      ptx::mbarrier_arrive(&smem.looked);
      ptx::mbarrier_wait(&smem.passed, 0);
      if (waits_again) reader.consumer_wait();
      if (!waits_again) ptx::mbarrier_wait(&smem.never, 0);
    }
  });
}

TEST_CASE("a release before all have looked comes first, unless something else is known to be wrong") {
  const std::string late = "arrivals missing\n  warp 0 lane 0 arrives at pipe.empty[0] (test_mbarriers.cu:";
  CHECK_THAT(released_before_all_have_looked(true, false),
             ContainsSubstring("for pipe.full[0], phase 3: 1 of 1 " + late));
  CHECK_THAT(released_before_all_have_looked(false, false), ContainsSubstring(", phase 0: 1 of 1 " + late));
  CHECK_THAT(
      released_before_all_have_looked(false, true),
      ContainsSubstring(": is a release missing between the waits?\n  warp 0 lane 0 arrives at pipe.empty"));
}

enum class Turns { right, first_inverted, passed_to_itself };

/// Two warpgroups take turns at a ring of three slots, two steps each, and skip those of the other.
std::string take_turns(const Schedule& schedule, Turns turns) {
  struct Ring {
    ladder::Pipeline<3> pipe;
    ptx::Mbarrier turn[2];
  };
  return failure({.block = 288, .shared_bytes = sizeof(Ring)}, schedule, [=] {
    auto& smem = ladder::shared_storage<Ring>();
    if (threadIdx.x == 0) {
      smem.pipe.init(1, 1);
      for (ptx::Mbarrier& turn : smem.turn) ptx::mbarrier_init(&turn, 1);
    }
    __syncthreads();
    constexpr int kSteps = 2, kTiles = 4;  // of each warpgroup
    if (threadIdx.x == 256) {
      ladder::Producer loader(smem.pipe);
      for (int step = 0; step < 2 * kTiles * kSteps; ++step) {
        loader.producer_acquire();
        loader.producer_commit();
      }
    }
    if (threadIdx.x % 128 || threadIdx.x == 256) return;
    const int me = static_cast<int>(threadIdx.x / 128);
    const int next = turns == Turns::passed_to_itself ? me : 1 - me;
    uint32_t parity = (me == 0) != (turns == Turns::first_inverted);
    ladder::Consumer reader(smem.pipe);
    reader.skip(me * kSteps);
    for (int tile = 0; tile < kTiles; ++tile, parity ^= 1) {
      ptx::mbarrier_wait(&smem.turn[me], parity);
      for (int step = 0; step < kSteps; ++step) {
        reader.consumer_wait();
        reader.consumer_release();
      }
      ptx::mbarrier_arrive(&smem.turn[next]);
      reader.skip(kSteps);
    }
  });
}

TEST_CASE(
    "of a turn that never comes it is said who had the first, or kept it, and no phase is called missed") {
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    CHECK(take_turns(schedule, Turns::right) == "");
    const std::string inverted = take_turns(schedule, Turns::first_inverted);
    CHECK_THAT(inverted,
               ContainsSubstring(" for turn[0], phase 0: 1 of 1 arrivals missing\n  nobody has ever "
                                 "arrived there; the wait of warp 4 lane 0 for turn[1] (") &&
                   ContainsSubstring("should the first turn be that of warp 0 lane 0?"));
    const std::string kept = take_turns(schedule, Turns::passed_to_itself);
    CHECK_THAT(kept, ContainsSubstring(" for turn[1], phase 0: 1 of 1 arrivals missing\n  nobody has ever "
                                       "arrived there; warp 0 lane 0 arrived once at turn[0] (") &&
                         ContainsSubstring("), for which it waits itself: should it arrive at turn[1]?\n"));
    for (const std::string& text : {inverted, kept})
      CHECK_THAT(text, !ContainsSubstring("wrong parity") && !ContainsSubstring("has not waited for"));
  }
}

/// Two warpgroups take turns; all threads pass the turn on, or the first one for all.
std::string pass_turns(const Schedule& schedule, bool one_passes) {
  struct Turns {
    ptx::Mbarrier turn[2];
  };
  return failure({.block = 256, .shared_bytes = sizeof(Turns)}, schedule, [=] {
    auto& smem = ladder::shared_storage<Turns>();
    if (threadIdx.x == 0)
      for (ptx::Mbarrier& turn : smem.turn) ptx::mbarrier_init(&turn, one_passes ? 1 : 128);
    __syncthreads();
    const unsigned me = threadIdx.x / 128;
    uint32_t parity = me == 0;
    for (int tile = 0; tile < 6; ++tile, parity ^= 1) {
      ptx::mbarrier_wait(&smem.turn[me], parity);
      if (!one_passes || threadIdx.x % 128 == 0) ptx::mbarrier_arrive(&smem.turn[1 - me]);
    }
  });
}

TEST_CASE("of a turn that one thread passes on for all it is said whom it has left behind") {
  bool is_named = false;
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(schedule.name());
    CHECK(pass_turns(schedule, false) == "");
    const std::string text = pass_turns(schedule, true);
    CHECK_THAT(text, !ContainsSubstring("is this slot"));
    is_named |= text.find(" passed this wait, and arrived at turn[") != text.npos &&
                text.find(
                    "which has gone on since: all of them must have passed the wait "
                    "before one thread arrives for them\n") != text.npos;
  }
  CHECK(is_named);
}

TEST_CASE("of an arrival too many it is said if a wait before was for a phase that had been waited for") {
  check_named_always("warp 0 lane 0 waits at test_mbarriers.cu:", [](Storage& shared) {
    if (threadIdx.x != 0) return;
    ptx::mbarrier_arrive(&shared.full[0]);
    ptx::mbarrier_wait(&shared.full[0], 0);
    ptx::mbarrier_wait(&shared.full[0], 0);
    ptx::mbarrier_arrive_expect_bytes(&shared.full[1], 16);
    ptx::mbarrier_arrive(&shared.full[1]);
  });
  check_named_always(" for full[0] with parity 0: that is phase 0, which it had waited for before\n",
                     [](Storage& shared) {
                       if (threadIdx.x != 0) return;
                       ptx::mbarrier_arrive(&shared.full[0]);
                       ptx::mbarrier_wait(&shared.full[0], 0);
                       ptx::mbarrier_wait(&shared.full[0], 0);
                       ptx::mbarrier_arrive_expect_bytes(&shared.full[1], 16);
                       ptx::mbarrier_arrive(&shared.full[1]);
                     });
}

TEST_CASE("of a circle of waits, the one that a new slot should let pass comes first") {
  struct Ring {
    ladder::Pipeline<2> pipe;
  };
  // The thread 32 fills slots with ordinary stores, of which nothing is seen here, and thread 0 reads them.
  const auto with_parities = [](uint32_t slot0, uint32_t slot1, bool commits) {
    return failure({.block = 64, .shared_bytes = sizeof(Ring)}, {}, [=] {
      auto& pipe = ladder::shared_storage<Ring>().pipe;
      if (threadIdx.x == 0) pipe.init(1, 1);
      __syncthreads();
      ladder::Consumer<2> consumer(pipe);
      for (int step = 0; step < 3; ++step) {
        const int slot = step % 2;
        if (threadIdx.x == 0) {
          consumer.consumer_wait();
          consumer.consumer_release();
        } else if (threadIdx.x == 32) {
          ptx::mbarrier_wait(&pipe.empty[slot], step < 2 ? (slot ? slot1 : slot0) : 0);
          if (commits) ptx::mbarrier_arrive(&pipe.full[slot]);
        }
      }
    });
  };
  const auto says = [](const std::string& slot, const std::string& waits) {
    return ContainsSubstring(
        "for pipe.empty[" + slot +
        "], phase 0: 1 of 1 arrivals missing\n  the slot is new, and empty: the first wait "
        "for it must have parity 1, and has 0; warp 0 lane 0 " +
        waits);
  };
  CHECK_THAT(with_parities(0, 1, true), says("0", "waits for pipe.full[0]\n"));
  CHECK_THAT(with_parities(1, 0, true), says("1", "waits for pipe.full[1]\n"));
  const std::string uncommitted = with_parities(1, 1, false);
  CHECK_THAT(uncommitted, ContainsSubstring("deadlock") && !ContainsSubstring("the slot is new"));
}

TEST_CASE("a loop over barriers that let it pass for ever is named with its line") {
  const std::string text = blame({}, [](Storage& shared) {
    if (threadIdx.x != 40) return;
    for (;;) ptx::mbarrier_wait(&shared.empty[0], 1);
  });
  CHECK_THAT(text, ContainsSubstring("the thread runs for ever: it passed test_mbarriers.cu:"));
  CHECK_THAT(text, ContainsSubstring("in block (0,0,0) warp 1 lane 8"));
}

TEST_CASE("pipelines that one line initialises are told apart by their number") {
  struct Pipelines {
    ladder::Pipeline<1> of_warpgroup[2];
  };
  const auto kernel = [] {
    auto& shared = ladder::shared_storage<Pipelines>();
    if (threadIdx.x == 0) {
      for (auto& pipe : shared.of_warpgroup) pipe.init(1, 1);
      ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ladder::Producer<1> producer(shared.of_warpgroup[0]);
    ladder::Consumer<1> consumer(shared.of_warpgroup[threadIdx.x == 32 ? 1 : 0]);
    if (threadIdx.x == 0) {
      producer.producer_acquire();
      producer.producer_commit();
    }
    if (threadIdx.x == 32) consumer.consumer_wait();  // of the pipeline that nobody fills
  };
  CHECK_THAT(failure({.block = 64, .shared_bytes = sizeof(Pipelines)}, {}, kernel),
             ContainsSubstring("for pipe[1].full[0], phase of parity 0"));
}

TEST_CASE("counts and bytes that a barrier cannot hold are named") {
  check_named_always("mbarrier.init with a count of 0", [](Storage& shared) {
    if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full[0], 0);
  });
  check_named_always("a barrier counts at most 1048575 bytes, not 1048576", [](Storage& shared) {
    if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&shared.full[0], 1 << 20);
  });
}

TEST_CASE("using a barrier without a __syncthreads after its initialisation is a race") {
  const auto kernel = [] {
    auto& shared = ladder::shared_storage<Storage>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&shared.full[0], 1);
      ptx::fence_mbarrier_init();
    }
    if (threadIdx.x == 32) ptx::mbarrier_arrive(&shared.full[0]);
    if (threadIdx.x == 0) ptx::mbarrier_wait(&shared.full[0], 0);
  };
  CHECK_THAT(failure(kShape, Schedule::parse("highest-first/late"), kernel),
             ContainsSubstring("was never initialised"));
  if (!instrumented()) return;
  const CheckRaces checked;
  CHECK_THAT(failure(kShape, Schedule::parse("lowest-first/late"), kernel),
             ContainsSubstring("mbarrier.init (a write)"));
}

TEST_CASE("mbarriers: what the first block leaves behind is recorded where spans are") {
  const auto body = [] {
    auto& shared = ladder::shared_storage<Storage>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&shared.full[0], 1);
      ptx::fence_mbarrier_init();
      ptx::mbarrier_init(&shared.empty[1], 2);
    }
    __syncthreads();
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
    if (threadIdx.x < 32) ptx::mbarrier_wait(&shared.full[0], 0);
    if (threadIdx.x < 16) ptx::mbarrier_wait(&shared.empty[1], 1);  // returns at once: no phase has ended
  };
  Options options;
  options.trace = true;
  set_options(options);
  launch({"test", 2, kShape.block, 1, kShape.shared_bytes}, body);
  REQUIRE(last_mbarriers().size() == 2);
  const MbarrierRecord &full = last_mbarriers()[0], &empty = last_mbarriers()[1];
  CHECK(full.name == "full[0]");
  CHECK_THAT(full.where, ContainsSubstring("test_mbarriers.cu:"));
  CHECK((full.arrivals == 1 && full.fenced && full.phases == 1 && full.witnesses == 32));
  CHECK((empty.arrivals == 2 && !empty.fenced && empty.phases == 0 && empty.witnesses == 0));

  set_options({});
  launch({"test", 1, kShape.block, 1, kShape.shared_bytes}, body);
  CHECK(last_mbarriers().empty());
}

}  // namespace mbarriers_test
