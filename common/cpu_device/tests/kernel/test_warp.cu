/// @file
/// Shuffles, votes and __syncwarp.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/device/shared_storage.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace warp_test {

TEST_CASE("a butterfly sum reaches every lane on every schedule") {
  for (const Schedule& schedule : all_schedules()) {
    std::vector<float> sums(64);
    run({.block = 64}, schedule, [&] {
      float sum = static_cast<float>(threadIdx.x);
      for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
      sums[threadIdx.x] = sum;
    });
    for (int i = 0; i < 64; ++i) REQUIRE(sums[i] == (i < 32 ? 496 : 1520));
  }
}

TEST_CASE("shuffles keep a lane's own value where the source lies outside of the segment") {
  std::vector<int> up(32), down(32), index(32);
  run({.block = 32}, {}, [&] {
    const int lane = static_cast<int>(threadIdx.x);
    up[lane] = __shfl_up_sync(~0u, lane, 3, 8);
    down[lane] = __shfl_down_sync(~0u, lane, 3, 8);
    index[lane] = __shfl_sync(~0u, lane, 9, 8);
  });
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(up[lane] == (lane % 8 >= 3 ? lane - 3 : lane));
    CHECK(down[lane] == (lane % 8 < 5 ? lane + 3 : lane));
    CHECK(index[lane] == lane / 8 * 8 + 1);
  }
}

TEST_CASE("votes see the lanes of their mask") {
  std::vector<unsigned> ballots(32), matches(32);
  run({.block = 32}, {}, [&] {
    const unsigned lane = threadIdx.x, half = lane < 16 ? 0x0000ffff : 0xffff0000;
    ballots[lane] = __ballot_sync(half, lane % 2);
    matches[lane] = __match_any_sync(~0u, lane / 10);
    if (__any_sync(~0u, lane == 5) != 1 || __all_sync(~0u, lane < 32) != 1 || __all_sync(~0u, lane < 31) != 0)
      __trap();
  });
  CHECK(ballots[0] == 0x0000aaaa);
  CHECK(ballots[31] == 0xaaaa0000);
  CHECK(matches[12] == 0x000ffc00);
}

TEST_CASE("lanes that have exited no longer take part") {
  std::vector<unsigned> ballots(32);
  run({.block = 32}, {Order::lowest_first, Landing::late}, [&] {
    if (threadIdx.x < 4) return;
    ballots[threadIdx.x] = __ballot_sync(~0u, 1);
  });
  CHECK(ballots[31] == 0xfffffff0);
}

TEST_CASE("__syncwarp does not wait for lanes that exit, before or after the others have come") {
  for (const Order order : {Order::lowest_first, Order::highest_first}) {
    std::vector<int> seen(32);
    run({.block = 32}, {order, Landing::late}, [&] {
      if (threadIdx.x % 8 == 0) return;
      __syncwarp();
      seen[threadIdx.x] = 1;
      __syncwarp(0xfefefefe);
      ++seen[threadIdx.x];
    });
    for (int lane = 0; lane < 32; ++lane) CHECK(seen[lane] == (lane % 8 == 0 ? 0 : 2));
  }
}

TEST_CASE("shuffles and votes go on without lanes that exit, before or after the others have come") {
  for (const Order order : {Order::lowest_first, Order::highest_first}) {
    for (const bool first_stays : {true, false}) {
      unsigned seen[4] = {};
      const std::string text = failure({.block = 32}, {order, Landing::late}, [&] {
        if (threadIdx.x % 16 == (first_stays ? 3 : 0)) return;
        const unsigned yes = __ballot_sync(~0u, 1), sum = __reduce_add_sync(~0u, 1);
        const unsigned same = __match_any_sync(~0u, threadIdx.x / 16);
        const unsigned value = __shfl_sync(~0u, threadIdx.x + 7, 0, 16);
        if (threadIdx.x == 17) seen[0] = yes, seen[1] = sum, seen[2] = same, seen[3] = value;
      });
      if (first_stays) {
        CHECK(text == "");
        CHECK(std::vector<unsigned>(seen, seen + 4) == std::vector<unsigned>{0xfff7fff7, 30, 0xfff70000, 23});
      } else {
        CHECK_THAT(text, ContainsSubstring("__shfl_sync reads lane 0, which has exited") ||
                             ContainsSubstring("__shfl_sync reads lane 16, which has exited"));
      }
    }
  }
}

TEST_CASE("reading a lane that does not take part is named") {
  const std::string text = failure({.block = 32}, {}, [] {
    if (threadIdx.x < 16) __shfl_sync(0x0000ffff, 1, 20);
  });
  CHECK_THAT(text, ContainsSubstring("__shfl_sync reads lane 20, which does not take part"));
  const std::string down = failure({.block = 32}, {}, [] {
    if (threadIdx.x < 16) __shfl_down_sync(0x0000ffff, 1, 16);
  });
  CHECK_THAT(down, ContainsSubstring("__shfl_down_sync reads lane 16, which does not take part"));
}

TEST_CASE("lanes that diverge into different collectives are named") {
  const std::string text = failure({.block = 32}, {}, [] {
    if (threadIdx.x < 16) {
      __syncwarp();
    } else {
      __shfl_sync(~0u, 1, 0);
    }
  });
  CHECK_THAT(text, ContainsSubstring("warp divergence: this lane executes __shfl_sync"));
}

TEST_CASE("a lane that forgets its warp shows as a deadlock of the others") {
  const std::string text = failure({.block = 64}, {}, [] {
    if (threadIdx.x != 7) __syncwarp();
    __syncthreads();
  });
  CHECK_THAT(text, ContainsSubstring("warp 0 lanes 0-6 wait at"));
  CHECK_THAT(text, ContainsSubstring("in __syncwarp for lanes of mask 0xffffffff"));
  CHECK_THAT(text, ContainsSubstring("warp 0 lane 7 waits at"));
}

TEST_CASE("lanes that do not come to a shuffle of their warp are named in the first lines") {
  const std::string text = failure({.block = 64}, {}, [] {
    if (threadIdx.x == 0) __shfl_sync(~0u, 1, 0);
    __syncthreads();
  });
  CHECK_THAT(text, ContainsSubstring("deadlock: warp 0 lane 0 waits at test_warp.cu:"));
  CHECK_THAT(text, ContainsSubstring(" in __shfl_sync\n  lanes 1-31 of warp 0 have not come, and now wait at "
                                     "test_warp.cu:"));
}

TEST_CASE("__syncwarp orders shared memory within a warp") {
  const CheckRaces checked;
  for (const Schedule& schedule : all_schedules()) {
    int wrong = 0;
    run({.block = 32, .shared_bytes = 128}, schedule, [&] {
      auto& values = ladder::shared_storage<float[32]>();
      values[threadIdx.x] = static_cast<float>(threadIdx.x);
      __syncwarp();
      if (values[31 - threadIdx.x] != static_cast<float>(31 - threadIdx.x)) ++wrong;
    });
    REQUIRE(wrong == 0);
  }
}

}  // namespace warp_test
