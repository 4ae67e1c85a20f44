/// @file
/// Blocks that hand over to each other through global memory: their order, and what orders what they store.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>
#include <vector>

#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/cpu_device/tests/mistake_checks.hpp"
#include "common/cpu_device/tests/tensor_map.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/tma.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace grid_order_test {
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

std::string blame(const Schedule& schedule, bool check_grid, const std::function<void()>& body,
                  unsigned threads = kThreads) {
  Options options;
  options.schedule = schedule;
  options.check_races = true;
  options.check_grid = check_grid;
  options.os_threads = 1;
  set_options(options);
  try {
    launch({"test", kBlocks, threads, 1, 128}, body);
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

TEST_CASE("two blocks that store the same elements are named, and no hand-over is asked for") {
  Memory memory;
  const std::string text = blame({}, true, [&] {
    if (threadIdx.x == 0) arrive_acq_rel(memory.arrivals);
    memory.stored[threadIdx.x] = 1;
  });
  CHECK_THAT(text, ContainsSubstring("race in global memory: block (0,0,0) and block (1,0,0) store the same "
                                     "elements by the same line, and nothing orders the two"));
}

TEST_CASE("of blocks that store the same elements it is told whether a coordinate may have been forgotten") {
  Memory memory;
  const std::string forgotten =
      "the same thread of both, and the blocks differ in x alone: is blockIdx.x missing";
  CHECK_THAT(blame({}, true, [&] { memory.stored[threadIdx.x] = 1; }), ContainsSubstring(forgotten));
  // Other threads of the two blocks.
  const std::string text = blame({}, true, [&] { memory.stored[threadIdx.x + blockIdx.x] = 1; });
  CHECK_THAT(text, ContainsSubstring("their parts overlap, or an index goes beyond the end of a row"));
  CHECK_THAT(text, !ContainsSubstring("differ in"));
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

// --- who fences, and when ---------------------------------------------------------------------------------

namespace {

/// Blocks hand over as split K does: all threads store, one counts, and all threads of the block that comes
/// last read. Each of these is executed by the threads that come to it; null for nothing.
struct Steps {
  std::function<void()> all_before_sync = nullptr, one_before = nullptr, one_after = nullptr,
                        all_after_sync = nullptr;
  Arrive arrive = [](unsigned& arrivals) { return atomicAdd(&arrivals, 1u); };
  bool first_sync = true, thread_0_stores = true;
};

void hand_over_to_all(Memory& memory, std::vector<int>& is_last, std::vector<int>& sums, const Steps& steps) {
  const auto call = [](const std::function<void()>& step) {
    if (step) step();
  };
  if (threadIdx.x != 0 || steps.thread_0_stores) memory.stored[blockIdx.x * kThreads + threadIdx.x] = 1;
  call(steps.all_before_sync);
  if (steps.first_sync) __syncthreads();
  if (threadIdx.x == 0) {
    call(steps.one_before);
    is_last[blockIdx.x] = steps.arrive(memory.arrivals) == kBlocks - 1;
    call(steps.one_after);
  }
  __syncthreads();
  if (!is_last[blockIdx.x]) return;
  call(steps.all_after_sync);
  for (const int& one : memory.stored) sums[threadIdx.x] += one;
}

/// What is said of it on a schedule.
std::string blame(const Schedule& schedule, const Steps& steps) {
  Memory memory;
  std::vector<int> is_last(kBlocks), sums(kThreads);
  return blame(schedule, true, [&] { hand_over_to_all(memory, is_last, sums, steps); });
}

void check_right(const Steps& steps) {
  for (const Schedule& schedule : all_schedules()) {
    INFO("schedule " << schedule.name());
    CHECK(blame(schedule, steps) == "");
  }
}

/// All of these words are said on each schedule.
void check_says(const Steps& steps, const std::vector<std::string>& words) {
  for (const Schedule& schedule : fixed_schedules()) {
    INFO("schedule " << schedule.name());
    const std::string text = blame(schedule, steps);
    for (const std::string& word : words) CHECK_THAT(text, ContainsSubstring(word));
  }
}

void fence() { __threadfence(); }
void weaker_fence() { thread_fence(Location::current(), /*is_sequentially_consistent=*/false); }

Arrive arrive_with(cuda::memory_order order) {
  return [order](unsigned& arrivals) { return DeviceCounter(arrivals).fetch_add(1, order); };
}

constexpr const char *kFirst = "does not release what it has stored\n  first, block",
                     *kSecond = "the second does not acquire what the first has released\n  second, block",
                     *kNeither = "neither does the first release, nor the second acquire\n  first, block";

}  // namespace

TEST_CASE("thread 0 fences between the barrier and its atomic, and again after the atomic") {
  check_right({.one_before = fence, .one_after = fence});
}

TEST_CASE("all threads fence before the barrier: enough, if the readers fence as well") {
  check_right({.all_before_sync = fence, .one_after = fence});
  check_right({.all_before_sync = fence, .all_after_sync = fence});
}

TEST_CASE("all threads fence before the barrier: not enough for an atomic that acquires") {
  check_says({.all_before_sync = fence, .arrive = arrive_with(cuda::memory_order_acquire)},
             {kFirst, "thread 0 does the atomic operation at observe/test_grid_order.cu:",
              "its own __threadfence() must follow the __syncthreads(), and the one at observe/"});
}

TEST_CASE("all threads fence before the barrier: not enough with fences that only acquire and release") {
  check_says({.all_before_sync = weaker_fence, .one_after = fence},
             {kFirst, "must follow the __syncthreads()"});
  check_says({.all_before_sync = fence, .one_after = weaker_fence},
             {kFirst, "must follow the __syncthreads()"});
  check_right({.one_before = weaker_fence, .one_after = weaker_fence});
}

TEST_CASE("all other threads fence, but thread 0 does not") {
  const auto others = [] {
    if (threadIdx.x != 0) __threadfence();
  };
  check_says({.all_before_sync = others,
              .arrive = arrive_with(cuda::memory_order_acquire),
              .thread_0_stores = false},
             {kFirst, "it needs a __threadfence() of its own, after the __syncthreads()"});
}

TEST_CASE("all threads fence after the barrier: enough only if the others released with fences") {
  check_right({.one_before = fence, .all_after_sync = fence});
  const auto others = [] {
    if (threadIdx.x != 0) __threadfence();
  };
  check_says({.all_after_sync = fence, .arrive = arrive_with(cuda::memory_order_release)},
             {kSecond, "thread 0 does the atomic operation at", "own", "before the __syncthreads()"});
  check_says({.all_after_sync = others, .arrive = arrive_with(cuda::memory_order_release)},
             {kSecond, "it needs a __threadfence() of its own, before the __syncthreads()"});
}

TEST_CASE("atomics with an order need no fence") {
  check_right({.arrive = arrive_with(cuda::memory_order_acq_rel)});
  check_right({.arrive = arrive_with(cuda::memory_order_seq_cst)});
  check_right({.one_after = fence, .arrive = arrive_with(cuda::memory_order_release)});
  check_right({.one_before = fence, .arrive = arrive_with(cuda::memory_order_acquire)});
}

TEST_CASE("the side that lacks its fence is named, or both are") {
  check_says({}, {kNeither, "which releases nothing: it needs a __threadfence() before it",
                  "\n  second, block", "which acquires nothing: it needs a __threadfence() after it"});
  check_says({.one_after = fence}, {kFirst, "which releases nothing"});
  check_says({.one_before = fence}, {kSecond, "which acquires nothing"});
  check_says({.arrive =
                  [](unsigned& arrivals) {
                    return BlockCounter(arrivals).fetch_add(1, cuda::memory_order_acq_rel);
                  }},
             {kNeither, "has the scope of its block, and tells others nothing", "learns nothing of others"});
}

TEST_CASE("the thread that counts too early is named, with the one that it has not met") {
  check_says({.arrive = arrive_with(cuda::memory_order_acq_rel), .first_sync = false},
             {kFirst, "thread 0 does the atomic operation at", "before it has met thread ",
              "a __syncthreads() belongs between the two, or in a role a named barrier of its threads"});
}

TEST_CASE("a thread that reads before it has met the one that acquired is named") {
  Memory memory;
  CHECK_THAT(blame({}, true,
                   [&] {
                     memory.stored[blockIdx.x * kThreads + threadIdx.x] = 1;
                     __syncthreads();
                     if (threadIdx.x == 0) arrive_acq_rel(memory.arrivals);
                     if (threadIdx.x == 32 && memory.arrivals == kBlocks) memory.sum = memory.stored[0];
                   }),
             ContainsSubstring("second, block (4,0,0): thread 32 comes before it has met thread 0"));
}

TEST_CASE("where no atomic operation leads from block to block, that is said") {
  check_says({.arrive = [](unsigned& arrivals) { return arrivals++; }},
             {"no atomic operation that block", "tells it that block"});
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

TEST_CASE("two threads of a block that store one element are told from those that update it") {
  static unsigned global;
  add_device_variable(&global, sizeof global);  // within a block such memory alone is checked
  unsigned* const element = &global;
  const std::string stores = blame({}, true, [&] {
    if (blockIdx.x == 0 && threadIdx.x % 32 == 0) *element = threadIdx.x + 1;
  });
  CHECK_THAT(stores,
             ContainsSubstring(
                 "race in global memory: thread 0 and thread 32 of block (0,0,0) store "
                 "the same element by the same line, and nothing orders the two: "
                 "they are the same lane of warps 0 and 1: does the index leave the "
                 "warp out, do their parts overlap, or should one of them store alone?\n  first store by"));
  const auto two_store = [&](unsigned one, unsigned other) {
    const auto store = [&] {
      if (blockIdx.x == 0 && (threadIdx.x == one || threadIdx.x == other)) *element = threadIdx.x + 1;
    };
    return blame({}, true, store, /*threads=*/256);
  };
  CHECK_THAT(two_store(31, 159), ContainsSubstring("they are the same thread of warpgroups 0 and 1: does the "
                                                   "index leave the warpgroup out") &&
                                     !ContainsSubstring("\n  in block"));  // of another thread
  CHECK_THAT(two_store(3, 4), ContainsSubstring("they are two lanes of one warp: does the index leave the "
                                                "lane out"));
  CHECK_THAT(two_store(3, 36), ContainsSubstring(": should each store elements of its own?"));
  static unsigned row[16 + 8];  // the two elements of each of 16 lanes are 8 apart
  add_device_variable(row, sizeof row);
  CHECK_THAT(blame({}, true,
                   [&] {
                     if (blockIdx.x == 0 && threadIdx.x < 16)
                       for (int i = 0; i < 2; ++i) row[threadIdx.x + 8 * i] = threadIdx.x + 1;
                   }),
             ContainsSubstring("they are two lanes of one warp: does the index leave the lane out, do their "
                               "parts overlap, or should one of them store alone?"));
  const auto update = [&](unsigned to) { *element = to; };
  const std::string by_two_lines = blame({}, true, [&] {
    if (blockIdx.x != 0) return;
    if (threadIdx.x == 0) update(1);
    if (threadIdx.x == 32) *element = 2;
  });
  CHECK_THAT(
      by_two_lines,
      ContainsSubstring("a __syncthreads() is missing, or each thread should store elements of its own"));
  for (const Schedule& schedule : fixed_schedules()) {
    INFO("schedule " << schedule.name());
    const std::string updates = blame(schedule, true, [&] {
      if (blockIdx.x == 0 && threadIdx.x % 32 == 0) *element = *element + threadIdx.x + 1;
    });
    CHECK_THAT(updates, ContainsSubstring("a barrier is missing, or an atomic operation where the line "
                                          "updates what is there\n"));
  }
}

TEST_CASE("stores are told apart to the byte, also where two pages of the checker meet") {
  using Unaligned __attribute__((aligned(1))) = uint64_t;
  std::vector<unsigned char> bytes(2 * 4096);
  const size_t to_boundary = 4096 - reinterpret_cast<uintptr_t>(bytes.data()) % 4096;
  unsigned char* const piece = &bytes[to_boundary >= 4 ? to_boundary - 4 : to_boundary + 4096 - 4];
  const auto blame_of_last_block = [&](unsigned byte) {
    return blame({}, true, [&] {
      if (threadIdx.x != 0) return;
      if (blockIdx.x == kBlocks - 1) piece[byte] = 1;
      if (blockIdx.x != 0) return;
      for (int i = 0; i < 2; ++i) {  // the second store of 8 bytes replaces both that were before
        *reinterpret_cast<Unaligned*>(piece) = 0;
        piece[6] = 1;
      }
      *reinterpret_cast<Unaligned*>(piece) = 0;
    });
  };
  for (const unsigned byte : {0u, 3u, 4u, 6u, 7u}) {
    INFO(byte);
    CHECK_THAT(blame_of_last_block(byte),
               ContainsSubstring("first store by block (0,0,0) warp 0 lane 0 at") &&
                   ContainsSubstring("then  store by block (4,0,0)"));
  }
  CHECK(blame_of_last_block(8) == "");
  CHECK(blame({}, true, [&] {
          if (threadIdx.x == 0) piece[blockIdx.x + 2] = 1;
        }) == "");
}

TEST_CASE("two boxes that overlap are told apart by their sizes") {
  std::vector<__nv_bfloat16> matrix(64 * 128);
  const auto two_boxes = [&](const CUtensorMap& map, int row, int column) {
    return blame({}, true, [&] {
      if (threadIdx.x != 0 || blockIdx.x > 1) return;
      ptx::tma_store(&map, &ladder::shared_storage<char[128]>(), blockIdx.x * column, blockIdx.x * row);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
  };
  const CUtensorMap map = map_of(matrix.data(), 64, 128, 4, CU_TENSOR_MAP_SWIZZLE_NONE, 16);
  CHECK_THAT(two_boxes(map, 0, 2),
             ContainsSubstring("\n  the box from row 0, column 0 on and the box from row 0, column 2 on "
                               "overlap: a box has 16 columns, and the next begins 2 columns to the right: "
                               "is the box of the tensor map too wide?\n"));
  CHECK_THAT(
      two_boxes(map, 1, 0),
      ContainsSubstring("overlap: a box has 4 rows, and the next begins 1 row below: is the box of the "
                        "tensor map too high?\n"));
  CHECK_THAT(two_boxes(map, 0, 4),  // as many columns as a box has rows
             ContainsSubstring("the next begins 4 columns to the right: are row and column exchanged, or is "
                               "the box of the tensor map too wide?\n"));
  CHECK_THAT(two_boxes(map, 1, 8),
             ContainsSubstring("overlap: a box has 4 rows and 16 columns: do the tiles of two blocks "
                               "overlap, or do both have one?\n"));
  CHECK(two_boxes(map, 4, 0) == "");
  CHECK(two_boxes(map, 0, 16) == "");
}

TEST_CASE("what two warps or warpgroups of a block have both stored is remembered") {
  uint16_t* c = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&c), 64 * 16 * sizeof *c) == cudaSuccess);
  const auto said = [&](unsigned threads_of_a_part, unsigned rows_apart) {
    Options options;
    options.check_races = options.check_grid = true;
    options.os_threads = 1;
    set_options(options);
    (void)take_work_of_kernels();
    launch({"test", 1, 256, 1, 128}, [&] {
      const unsigned part = threadIdx.x / threads_of_a_part, row = threadIdx.x % threads_of_a_part;
      if (part < 2 && row < 8) c[(part * rows_apart + row) * 16] = 1;
    });
    return take_work_of_kernels().stored_twice(c, 16);
  };
  if (!instrumented()) return;
  CHECK(said(128, 8) == "");
  CHECK_THAT(said(128, 4),
             ContainsSubstring("warpgroups 0 and 1 of block (0,0,0) both store elements of rows 4 to 7 of C "
                               "(test_grid_order.cu:") &&
                 ContainsSubstring("): does warpgroup 1 begin too close to warpgroup 0, in rows or in "
                                   "columns?"));
  CHECK_THAT(said(32, 6),
             ContainsSubstring("warps 0 and 1 of block (0,0,0) both store elements of rows 6 to 7"));
  CHECK(cudaFree(c) == cudaSuccess);
}

TEST_CASE("copies between two blocks that nothing orders are named") {
  std::vector<__nv_bfloat16> row(64);
  const CUtensorMap map = map_of(row.data(), 1, 64, 1, CU_TENSOR_MAP_SWIZZLE_NONE);
  const auto store_to = [](const CUtensorMap& to) {
    ptx::tma_store(&to, &ladder::shared_storage<char[128]>(), 0, 0);
    ptx::tma_store_commit();
    ptx::tma_store_wait<0>();
  };
  const auto store = [&] { store_to(map); };
  CHECK_THAT(
      blame({}, true,
            [&] {
              if (threadIdx.x == 0) store();
            }),
      ContainsSubstring("\n  both store the box from row 0, column 0 on at observe/test_grid_order.cu:") &&
          ContainsSubstring(": do the tiles of two blocks overlap, or do both have one?\n  first store by "
                            "block (0,0,0) warp 0 "
                            "lane 0 at observe/test_grid_order.cu:") &&
          ContainsSubstring("then  store by block (1,0,0)"));
  // Block 1 begins where block 0 sends its second box, one box too far.
  std::vector<__nv_bfloat16> wide(256);
  const CUtensorMap boxes = map_of(wide.data(), 1, 256, 1, CU_TENSOR_MAP_SWIZZLE_NONE);
  const auto send = [&](int column) {
    ptx::tma_store(&boxes, &ladder::shared_storage<char[128]>(), column, 0);
  };
  const auto blame_of_second_box = [&](int apart, bool in_one_group) {
    return blame({}, true, [&] {
      if (threadIdx.x || blockIdx.x > 1) return;
      send(2 * 64 * blockIdx.x);
      if (!in_one_group) ptx::tma_store_commit();
      send(2 * 64 * blockIdx.x + apart);
      ptx::tma_store_commit();
      ptx::tma_store_wait<0>();
    });
  };
  const std::string too_far =
      ": the box that block (0,0,0) sends before this one begins at column 0 and has 64 "
      "columns: should this one begin at column 64?";
  CHECK(blame_of_second_box(64, true) == "");
  CHECK_THAT(blame_of_second_box(128, true), ContainsSubstring(too_far));
  CHECK_THAT(blame_of_second_box(128, false), ContainsSubstring(": do the tiles of two blocks overlap"));
  void* memory = nullptr;  // within a block, only of what the device has allocated
  REQUIRE(cudaMalloc(&memory, 128) == cudaSuccess);
  const CUtensorMap shared_map =
      map_of(static_cast<__nv_bfloat16*>(memory), 1, 64, 1, CU_TENSOR_MAP_SWIZZLE_NONE);
  CHECK_THAT(
      blame({}, true,
            [&] {
              if (blockIdx.x == 0 && threadIdx.x % 32 == 0) store_to(shared_map);
            }),
      ContainsSubstring("race in global memory: block (0,0,0) warp 0 lane 0 and warp 1 lane 0 both store "
                        "the same elements, and nothing orders the two\n  both store the box from row 0, "
                        "column 0 on at observe/test_grid_order.cu:") &&
          ContainsSubstring(": they are the same lane of warps 0 and 1: does the row or the column leave the "
                            "warp out, do their parts overlap, or should one of them store alone?\n"));
  // One thread's own stores have no order either, until it has waited for more than that they are read.
  const auto store_twice = [&](bool waits) {
    return blame({}, true, [&] {
      if (blockIdx.x != 0 || threadIdx.x != 0) return;
      for (int i = 0; i < 2; ++i) {
        ptx::tma_store(&shared_map, &ladder::shared_storage<char[128]>(), 0, 0);
        ptx::tma_store_commit();
        if (waits)
          ptx::tma_store_wait<0>();
        else
          ptx::tma_store_wait_read<0>();
      }
    });
  };
  CHECK_THAT(store_twice(/*waits=*/false),
             ContainsSubstring("race in global memory: block (0,0,0) warp 0 lane 0 stores the same elements "
                               "twice by TMA, and nothing orders the two\n  both store the box from row 0, "
                               "column 0 on at observe/test_grid_order.cu:") &&
                 ContainsSubstring(": should the row or the column go on from one box to the next?\n"));
  CHECK(store_twice(/*waits=*/true) == "");
  REQUIRE(cudaFree(memory) == cudaSuccess);
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
  const std::vector<unsigned> rising{0, 1, 2, 3, 4}, falling{4, 3, 2, 1, 0}, odd_first{1, 3, 0, 2, 4};
  CHECK(order_of_blocks(Schedule::parse("round-robin/late")) == rising);
  CHECK(order_of_blocks(Schedule::parse("highest-first/eager")) == falling);
  CHECK(order_of_blocks(Schedule::parse("lowest-first/late")) == odd_first);
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

}  // namespace grid_order_test
