/// @file
/// The hand-overs of ping-pong without its tiles, and what becomes of them when one is forgotten: on the CPU
/// device alone, because some of these kernels would hang on a GPU.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "05_ws_double_buffer/variants/ping_pong.cuh"
#include "common/cuda/device_buffer.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/testing/breadth.hpp"
#include "common/testing/gemm_checks.hpp"
#ifdef LADDER_CPU_DEVICE
#include "common/cpu_device/cpu_device.hpp"
#endif

using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;
using lesson05::ping_pong::Turn;

namespace {

constexpr int kSlots = 3, kTiles = 5;
constexpr int kLoader = 2 * ladder::kWarpgroup, kThreads = kLoader + ladder::kWarp;

enum class Mistake { none, does_not_pass, one_passes_for_all, does_not_wait, does_not_skip };

struct SharedStorage {
  ladder::Pipeline<kSlots> pipe;
  Turn::Barriers turn;
  int slots[kSlots];
};

/// The loader writes the number of the step into the slot; the threads of warpgroup t % 2 note what they find
/// there for tile t.
__global__ void hand_over(int* const found, int steps, Mistake mistake) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const bool one_passes = mistake == Mistake::one_passes_for_all;
  if (threadIdx.x == 0) {
    smem.pipe.init(1, ladder::kWarpgroup);
    Turn::init(smem.turn);
    for (auto& turn : smem.turn)
      if (one_passes) ptx::mbarrier_init(&turn, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x == kLoader) {
    ladder::Producer<kSlots> pipe(smem.pipe);
    for (int step = 0; step < kTiles * steps; ++step) {
      const int slot = pipe.producer_acquire();
      smem.slots[slot] = step;
      pipe.producer_commit();
    }
  }
  if (threadIdx.x < kLoader) {
    const int me = ladder::warpgroup_index(), thread = static_cast<int>(threadIdx.x) % ladder::kWarpgroup;
    ladder::Consumer<kSlots> pipe(smem.pipe);
    Turn turn(smem.turn, me);
    const auto skip = [&](int count) {
      if (mistake != Mistake::does_not_skip) pipe.skip(count);
    };
    skip(me * steps);
    for (int tile = me; tile < kTiles; tile += 2) {
      if (mistake != Mistake::does_not_wait) turn.wait();
      for (int step = tile * steps; step < (tile + 1) * steps; ++step) {
        found[step * ladder::kWarpgroup + thread] = smem.slots[pipe.consumer_wait()];
        pipe.consumer_release();
      }
      if (mistake != Mistake::does_not_pass && (thread == 0 || !one_passes)) turn.pass();
      skip(steps);
    }
  }
}

/// "" if every thread found what it should have, else "wrong".
std::string outcome(int steps, Mistake mistake) {
  std::vector<int> found(kTiles * steps * ladder::kWarpgroup, -1);
  ladder::DeviceBuffer<int> on_device(found);
  ladder::launch(
      hand_over,
      {.name = "hand_over", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      on_device.data(), steps, mistake);
  CUDA_CHECK(cudaMemcpy(found.data(), on_device.data(), found.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != static_cast<int>(i) / ladder::kWarpgroup) return "wrong";
  return "";
}

#ifdef LADDER_CPU_DEVICE
/// What the CPU device says of a kernel that it stops; "wrong" if it comes to its end with wrong numbers.
std::string report(int steps, Mistake mistake) {
  try {
    return outcome(steps, mistake);
  } catch (const cpu_device::Failure& failure) {
    return failure.what();
  }
}

/// What some schedule says, of all that find something wrong the first; "" if none does.
std::string report_of_any_schedule(int steps, Mistake mistake) {
  std::string text;
  for_each_schedule([&] {
    if (text.empty()) text = report(steps, mistake);
  });
  return text;
}
#endif

}  // namespace

TEST_CASE("05: warpgroups that take turns share one ring") {
  ladder::testing::skip_unless_runnable(lesson05::lesson());
  for (const int steps : ladder::testing::trip_counts(kSlots))
    for_each_schedule([&] { CHECK(outcome(steps, Mistake::none) == ""); }, /*random_seeds=*/50);
}

#ifdef LADDER_CPU_DEVICE
TEST_CASE("05: a turn that is never passed on leaves the other warpgroup waiting for it") {
  for_each_schedule([] {
    const std::string text = report(kSlots, Mistake::does_not_pass);
    CHECK_THAT(text, ContainsSubstring("deadlock"));
    CHECK_THAT(text, ContainsSubstring("warps 4-7 wait "));
    CHECK_THAT(text, ContainsSubstring("for turn[1]"));
    CHECK_THAT(text, ContainsSubstring("nobody arrived"));
  });
}

TEST_CASE("05: a turn that one thread passes on for all goes round while others wait for its beginning") {
  if (ladder::testing::breadth() <= ladder::testing::Breadth::narrow) SKIP("two schedules do not show it");
  CHECK_THAT(report_of_any_schedule(1, Mistake::one_passes_for_all),
             ContainsSubstring("the barrier went on by") || ContainsSubstring("deadlock"));
}

TEST_CASE("05: a warpgroup that does not leave out the other's slots does not get its own") {
  for_each_schedule([] { CHECK(report(kSlots + 1, Mistake::does_not_skip) != ""); });
}

TEST_CASE("05: a warpgroup that does not wait for its turn takes an older lap of the ring for its own") {
  CHECK(report_of_any_schedule(kSlots + 1, Mistake::does_not_wait) != "");
}
#endif
