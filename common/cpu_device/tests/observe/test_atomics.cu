/// @file
/// What the siblings of atomicAdd, fences and loads with hints order between blocks, and what they do not.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cuda/atomic>
#include <functional>
#include <vector>

#include "common/cpu_device/tests/mistake_checks.hpp"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace atomics_test {
namespace {

constexpr unsigned kBlocks = 3;

/// Each block stores with __stcg, then arrives; the one that `arrive` calls the last reads all with __ldcg.
std::string hand_over(const Schedule& schedule, const std::function<bool(unsigned& arrivals)>& arrive) {
  Options options;
  options.schedule = schedule;
  options.check_races = options.check_grid = true;
  options.os_threads = 1;
  set_options(options);
  std::vector<int> stored(kBlocks);
  unsigned arrivals = 0;
  int sum = 0;
  try {
    launch({"test", kBlocks, 1, 1, 0}, [&] {
      __stcg(&stored[blockIdx.x], 1);
      if (!arrive(arrivals)) return;
      for (const int& one : stored) sum += __ldcg(&one);
    });
  } catch (const Failure& failure) {
    return failure.what();
  }
  CHECK(sum == kBlocks);
  return "";
}

void check(const std::function<bool(unsigned& arrivals)>& arrive, bool orders) {
  for (const Schedule& schedule : fixed_schedules()) {
    INFO("schedule " << schedule.name());
    const std::string text = hand_over(schedule, arrive);
    if (orders)
      CHECK(text == "");
    else
      CHECK_THAT(text, ContainsSubstring("race in global memory") && ContainsSubstring("load by"));
  }
}

bool increment(unsigned& arrivals) { return atomicInc(&arrivals, kBlocks - 1) == kBlocks - 1; }

bool compare_and_swap(unsigned& arrivals) {
  unsigned seen = arrivals, before;
  while ((before = atomicCAS(&arrivals, seen, seen + 1)) != seen) seen = before;
  return seen == kBlocks - 1;
}

}  // namespace

TEST_CASE("a relaxed atomic operation of any name orders nothing alone, and all between fences") {
  for (const auto arrive : {increment, compare_and_swap}) {
    check(arrive, false);
    check(
        [=](unsigned& arrivals) {
          __threadfence();
          const bool last = arrive(arrivals);
          __threadfence();
          return last;
        },
        true);
  }
}

TEST_CASE("fences of libcu++ order what their scope and order say") {
  const auto between = [](cuda::memory_order order, cuda::thread_scope scope) {
    return [=](unsigned& arrivals) {
      cuda::atomic_thread_fence(order, scope);
      const bool last = compare_and_swap(arrivals);
      cuda::atomic_thread_fence(order, scope);
      return last;
    };
  };
  check(between(cuda::std::memory_order_acq_rel, cuda::thread_scope_device), true);
  check(between(cuda::std::memory_order_seq_cst, cuda::thread_scope_system), true);
  check(between(cuda::std::memory_order_relaxed, cuda::thread_scope_device), false);
  check(between(cuda::std::memory_order_acq_rel, cuda::thread_scope_block), false);
}

TEST_CASE("a compare_exchange that stores releases, one that does not only looks") {
  using OfDevice = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  const auto with = [](cuda::memory_order order) {
    return [=](unsigned& arrivals) {
      unsigned seen = 0;
      while (!OfDevice(arrivals).compare_exchange_strong(seen, seen + 1, order, cuda::memory_order_relaxed))
        continue;
      return seen == kBlocks - 1;
    };
  };
  check(with(cuda::memory_order_acq_rel), true);
  check(with(cuda::memory_order_release), false);
  check(with(cuda::memory_order_acquire), false);
}

}  // namespace atomics_test
