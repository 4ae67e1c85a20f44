/// @file
/// Blocks that hand over to each other through global memory: their order, and what orders what they store.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cuda/atomic>
#include <vector>

#include "common/cpu_device/tests/mistake_checks.hpp"
#include "common/device/shared_storage.cuh"
#include "common/ptx/tma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr unsigned kBlocks = 5, kThreads = 64;
using DeviceCounter = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using BlockCounter = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;

/// Global memory of the kernels here.
struct Memory {
  std::vector<int> stored = std::vector<int>(kBlocks * kThreads);
  std::vector<unsigned> order;  ///< in which blocks came
  unsigned arrivals = 0;
  int sum = 0;
};

/// Counts the block as arrived. @return how many were there before
using Arrive = std::function<unsigned(unsigned&)>;

std::string blame(const Schedule& schedule, bool check_grid, const std::function<void()>& body) {
  Options options;
  options.schedule = schedule;
  options.check_races = true;
  options.check_grid = check_grid;
  options.os_threads = 1;
  set_options(options);
  try {
    launch({"test", kBlocks, kThreads, 1, 128}, body);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

/// Every thread stores a number, and one of the block that arrives last adds up all of them.
void hand_over(Memory& memory, const Arrive& arrive, bool waits_for_block) {
  memory.stored[blockIdx.x * kThreads + threadIdx.x] = 1;
  if (waits_for_block) __syncthreads();
  if (threadIdx.x != 0) return;
  if (arrive(memory.arrivals) != kBlocks - 1) return;
  int sum = 0;
  for (const int& one : memory.stored) sum += one;
  memory.sum = sum;
}

void check_right(const Arrive& arrive) {
  for (const Schedule& schedule : all_schedules()) {
    INFO("schedule " << schedule.name());
    Memory memory;
    CHECK(blame(schedule, true, [&] { hand_over(memory, arrive, true); }) == "");
    CHECK(memory.sum == kBlocks * kThreads);
  }
}

void check_named(const Arrive& arrive, bool waits_for_block = true) {
  for (const Schedule& schedule : fixed_schedules()) {
    INFO("schedule " << schedule.name());
    Memory memory;
    CHECK_THAT(blame(schedule, true, [&] { hand_over(memory, arrive, waits_for_block); }),
               ContainsSubstring("race in global memory: blocks hand over") && ContainsSubstring("load by"));
  }
}

unsigned arrive_acq_rel(unsigned& arrivals) {
  return DeviceCounter(arrivals).fetch_add(1, cuda::memory_order_acq_rel);
}

std::vector<unsigned> order_of_blocks(const Schedule& schedule) {
  Memory memory;
  memory.order.reserve(kBlocks);
  CHECK(blame(schedule, true, [&] {
          if (threadIdx.x == 0) memory.order.push_back(blockIdx.x);
        }) == "");
  return memory.order;
}

}  // namespace

TEST_CASE("a released and acquired arrival hands over what the whole block has stored") {
  check_right(arrive_acq_rel);
}

TEST_CASE("fences before and after a relaxed arrival do the same") {
  check_right([](unsigned& arrivals) {
    __threadfence();
    const unsigned before = atomicAdd(&arrivals, 1u);
    __threadfence();
    return before;
  });
}

TEST_CASE("an arrival that orders nothing is named") {
  check_named([](unsigned& arrivals) { return atomicAdd(&arrivals, 1u); });
  check_named(
      [](unsigned& arrivals) { return DeviceCounter(arrivals).fetch_add(1, cuda::memory_order_relaxed); });
  check_named(
      [](unsigned& arrivals) { return BlockCounter(arrivals).fetch_add(1, cuda::memory_order_acq_rel); });
}

TEST_CASE("an arrival that only releases, or only acquires, is named") {
  check_named(
      [](unsigned& arrivals) { return DeviceCounter(arrivals).fetch_add(1, cuda::memory_order_release); });
  check_named(
      [](unsigned& arrivals) { return DeviceCounter(arrivals).fetch_add(1, cuda::memory_order_acquire); });
  check_named([](unsigned& arrivals) {
    __threadfence();
    return atomicAdd(&arrivals, 1u);
  });
}

TEST_CASE("a thread that arrives for others without having met them is named") {
  check_named(arrive_acq_rel, /*waits_for_block=*/false);
}

TEST_CASE("what a block has acquired it releases with its own") {
  for (const Schedule& schedule : fixed_schedules()) {
    INFO("schedule " << schedule.name());
    Memory memory;
    std::vector<unsigned> doors(kBlocks + 1);
    // In the order in which blocks come, each opens a door for the next; only the last one reads.
    CHECK(blame(schedule, true, [&] {
            if (threadIdx.x != 0) return;
            const unsigned place = DeviceCounter(memory.arrivals).fetch_add(1, cuda::memory_order_relaxed);
            const bool was_open = DeviceCounter(doors[place]).load(cuda::memory_order_acquire) == 1;
            memory.sum += was_open;
            memory.stored[place] = 1;
            DeviceCounter(doors[place + 1]).store(1, cuda::memory_order_release);
            if (place + 1 == kBlocks)
              for (unsigned i = 0; i < kBlocks; ++i) memory.sum += memory.stored[i];
          }) == "");
    CHECK(memory.sum == kBlocks - 1 + kBlocks);
  }
}

TEST_CASE("two blocks that store to the same place are named") {
  Memory memory;
  CHECK_THAT(blame({}, true,
                   [&] {
                     if (threadIdx.x == 0) memory.stored[7] = 1;
                   }),
             ContainsSubstring("first store by block (0,0,0) warp 0 lane 0 at") &&
                 ContainsSubstring("then  store by block (1,0,0) warp 0 lane 0 at"));
}

TEST_CASE("copies between two blocks that nothing orders are named") {
  std::vector<__nv_bfloat16> row(64);
  const cuuint64_t extents[] = {64, 1}, strides[] = {64 * sizeof row[0]};
  const cuuint32_t box[] = {64, 1}, steps[] = {1, 1};
  CUtensorMap map;
  REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, row.data(), extents, strides, box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  const auto store = [&] {
    ptx::tma_store(&map, &ladder::shared_storage<char[128]>(), 0, 0);
    ptx::tma_store_commit();
    ptx::tma_store_wait<0>();
  };
  CHECK_THAT(blame({}, true,
                   [&] {
                     if (threadIdx.x == 0) store();
                   }),
             ContainsSubstring("first store by block (0,0,0) warp 0 lane 0 at observe/test_grid_order.cu:") &&
                 ContainsSubstring("then  store by block (1,0,0)"));
  unsigned arrivals = 0;
  CHECK(blame({}, true, [&] {
          if (threadIdx.x != 0) return;
          if (arrive_acq_rel(arrivals) > 0) store();
          arrive_acq_rel(arrivals);
        }) == "");
  for (const bool releases : {true, false}) {
    arrivals = 0;
    CHECK((blame({}, true, [&] {
             if (threadIdx.x != 0) return;
             if (DeviceCounter(arrivals).fetch_add(1, cuda::memory_order_acquire) == 0)
               row[9] = 1.f;
             else
               __pipeline_memcpy_async(&ladder::shared_storage<char[128]>(), &row[8], 16);
             if (releases) arrive_acq_rel(arrivals);
             __pipeline_commit();
             __pipeline_wait_prior(0);
           }) == "") == releases);
  }
}

TEST_CASE("the schedule chooses the order of the blocks") {
  const std::vector<unsigned> rising{0, 1, 2, 3, 4}, falling{4, 3, 2, 1, 0};
  CHECK(order_of_blocks(Schedule::parse("round-robin/late")) == rising);
  CHECK(order_of_blocks(Schedule::parse("highest-first/eager")) == falling);
  const auto random = order_of_blocks(Schedule::random(3));
  CHECK(random == order_of_blocks(Schedule::random(3)));
  CHECK(std::is_permutation(random.begin(), random.end(), rising.begin(), rising.end()));
  CHECK((random != rising || order_of_blocks(Schedule::random(4)) != rising));
}

TEST_CASE("nothing of this is checked unless it is asked for") {
  Memory memory;
  const auto body = [&] {
    hand_over(
        memory, [](unsigned& arrivals) { return atomicAdd(&arrivals, 1u); }, true);
  };
  CHECK(blame({}, false, body) == "");
}

TEST_CASE("float sums of atomicAdd depend on the order of the blocks") {
  const auto sum = [](const Schedule& schedule) {
    float sum = 0;
    CHECK(blame(schedule, true, [&] {
            if (threadIdx.x == 0) atomicAdd(&sum, blockIdx.x == 0 ? 1e8f : 2.0f);
          }) == "");
    return sum;
  };
  CHECK(sum(Schedule::parse("lowest-first/late")) != sum(Schedule::parse("highest-first/late")));
}
