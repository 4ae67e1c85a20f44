/// @file
/// Indices that leave an array of shared memory, and blocks that have fewer threads than the kernel needs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/mbarrier.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace array_bounds_test {
namespace {

constexpr unsigned kRows = 8, kColumns = 8;

struct Storage {
  float a[kRows][kColumns], b[kRows][kColumns];
};
const Shape kShape{.block = kRows * kColumns, .shared_bytes = sizeof(Storage)};

/// Each thread fills an element of both, and adds two. @return what is said
std::string said_of(unsigned write_a, int write_b, unsigned read_a, bool has_barrier = true) {
  const CheckRaces checked;
  float sum = 0;
  return failure(kShape, {}, [&] {
    auto& smem = ladder::shared_storage<Storage>();
    const unsigned y = threadIdx.x / kColumns, x = threadIdx.x % kColumns;
    smem.a[y + write_a][x] = 1;
    smem.b[static_cast<int>(y) + write_b][x] = 2;
    if (has_barrier) __syncthreads();
    if (threadIdx.x == 63) sum = smem.a[y + read_a][x] + 1;
  });
}

}  // namespace

TEST_CASE(
    "a row behind the end of an array is named where another array lies there, and two threads write it") {
  if (!instrumented()) return;
  CHECK(said_of(0, 0, 0) == "");
  CHECK_THAT(said_of(1, 0, 0),
             ContainsSubstring("smem.a[y + write_a][x] (test_array_bounds.cu:33) leaves smem.a: "
                               "smem.a[8][0] would be there, and smem.a ends with smem.a[7][7]"));
  CHECK_THAT(said_of(0, -1, 0),
             ContainsSubstring("leaves smem.b: smem.b[-1][0] would be there, and smem.b begins "
                               "with smem.b[0][0]"));
}

TEST_CASE("a row behind the last array, or before the first, is no access to the block's shared memory") {
  if (!instrumented()) return;
  CHECK_THAT(said_of(0, 1, 0),
             ContainsSubstring("a store of 4 bytes lies 0 bytes behind the end of the block's 512 "
                               "bytes of shared memory, where smem.b[") &&
                 ContainsSubstring(" leads: smem.b[8][0] would be there"));
  CHECK_THAT(said_of(0, -9, 0), ContainsSubstring("bytes before the block's 512 bytes of shared memory"));
  CHECK_THAT(said_of(0, 0, 9), ContainsSubstring("a load of 4 bytes lies"));
}

namespace {
struct WithFlag {
  float a[kRows];
  bool is_complete;
};
}  // namespace

TEST_CASE("a flag of one byte is not said to be left") {
  if (!instrumented()) return;
  const CheckRaces checked;
  (void)take_work_of_kernels();
  CHECK(failure(kShape, {}, [&] {
          auto& smem = ladder::shared_storage<WithFlag>();
          if (threadIdx.x == 0) smem.is_complete = true;
          __syncthreads();
          if (threadIdx.x < kRows && smem.is_complete) smem.a[threadIdx.x] = 1;
        }) == "");
  CHECK(take_work_of_kernels().left_array() == "");
}

TEST_CASE("a race of a line that stays in its array, or goes over all by a pointer, is told as before") {
  if (!instrumented()) return;
  const CheckRaces checked;
  const std::string flat = failure(kShape, {}, [&] {
    auto& smem = ladder::shared_storage<Storage>();
    (&smem.a[0][0])[threadIdx.x] = 0;
    (&smem.a[0][0])[(threadIdx.x + 32) % 64 + 64] = 0;
    (&smem.a[0][0])[threadIdx.x + 64] = 1;
  });
  CHECK_THAT(flat, ContainsSubstring("race in shared memory") && !ContainsSubstring("leaves"));
  const std::string own = failure(kShape, {}, [&] {
    auto& smem = ladder::shared_storage<Storage>();
    smem.a[threadIdx.x / 16][threadIdx.x % 8] = 1;
  });
  CHECK_THAT(own, ContainsSubstring("race in shared memory") && !ContainsSubstring("leaves"));
}

namespace {

/// Two arrays at one place, of which the second is longer; and one that does not begin at a multiple of 16
/// bytes.
struct Shared {
  float last, values[7];
  union {
    float a[8];
    float b[64];
  };
};

}  // namespace

TEST_CASE("of arrays that share their bytes, or begin anywhere, nothing is said that may be wrong") {
  if (!instrumented()) return;
  const CheckRaces checked;
  const Shape shape{.block = 64, .shared_bytes = sizeof(Shared)};
  const std::string of_union = failure(shape, {}, [&] {
    auto& smem = ladder::shared_storage<Shared>();
    smem.b[threadIdx.x] = 1;
    smem.b[63 - threadIdx.x] = 2;
  });
  CHECK_THAT(of_union, ContainsSubstring("race in shared memory") && !ContainsSubstring("leaves"));
  const std::string of_values = failure(shape, {}, [&] {
    auto& smem = ladder::shared_storage<Shared>();
    smem.values[threadIdx.x % 7] = 1;
  });
  CHECK_THAT(of_values, ContainsSubstring("race in shared memory") && !ContainsSubstring("leaves"));
}

// --- blocks ---------------------------------------------------------------------------------------------

struct Hand {
  ptx::Mbarrier full;
};

/// Thread 64 hands over to thread 0, if there is one.
__global__ void __launch_bounds__(96) hand_over() {
  auto& smem = ladder::shared_storage<Hand>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&smem.full, 1);
  __syncthreads();
  if (threadIdx.x == 64) ptx::mbarrier_arrive(&smem.full);
  if (threadIdx.x == 0) ptx::mbarrier_wait(&smem.full, 0);
}

/// Nobody arrives, whatever the block has.
__global__ void __launch_bounds__(64) wait_in_vain() {
  auto& smem = ladder::shared_storage<Hand>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&smem.full, 1);
  __syncthreads();
  if (threadIdx.x == 0) ptx::mbarrier_wait(&smem.full, 0);
}

/// Thread (x, y) fills an element of its row.
__global__ void __launch_bounds__(kRows* kColumns) fill_rows() {
  auto& smem = ladder::shared_storage<Storage>();
  smem.b[threadIdx.y][threadIdx.x] = 1;
}

std::string said_of_launch(void (*kernel)(), unsigned threads) {
  try {
    ladder::launch(kernel, {.name = "test", .grid = 1, .block = threads, .shared_bytes = sizeof(Hand)});
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST_CASE("a barrier at which threads should arrive that the block does not have: the launch is named") {
  CHECK(said_of_launch(hand_over, 96) == "");
  CHECK_THAT(said_of_launch(hand_over, 64),
             ContainsSubstring("deadlock") &&
                 ContainsSubstring(" gives a block 64 threads, and __launch_bounds__ of "
                                   "the kernel names 96: are 64 too few?"));
  CHECK_THAT(said_of_launch(wait_in_vain, 64),
             ContainsSubstring("deadlock") && !ContainsSubstring("__launch_bounds__"));
}

TEST_CASE("a block of one row of threads is named where the kernel reads threadIdx.y, and goes too far") {
  if (!instrumented()) return;
  const CheckRaces checked;
  const auto said_of_block = [](dim3 block) -> std::string {
    Options options;
    options.check_races = true;
    set_launch_options(options);
    try {
      ladder::launch(fill_rows, {.name = "test", .grid = 1, .block = block, .shared_bytes = sizeof(Storage)});
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  };
  CHECK(said_of_block(dim3(kColumns, kRows)) == "");
  // Elements 64 and on of b lie in no array; a row of 64 threads just fills b, and one of 128 does not.
  CHECK_THAT(said_of_block(dim3(2 * kRows * kColumns)),
             ContainsSubstring("\n  the kernel reads threadIdx.y (test_array_bounds.cu:") &&
                 ContainsSubstring(" gives a block 128 x 1 threads: it is 0 in all of them"));
  set_launch_options({});
}

}  // namespace array_bounds_test
