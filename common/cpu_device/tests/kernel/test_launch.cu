/// @file
/// Launches: who runs, with which built-in variables and arguments, and how failures come out.

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/tests/kernel_test.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/ptx/elect.cuh"

using namespace cpu_device;
using namespace cpu_device::test;
using Catch::Matchers::ContainsSubstring;

namespace launch_test {
namespace {

__global__ void scale(float* values, int count, double factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= static_cast<float>(factor);
}

/// As large as three tensor maps.
struct Hundred {
  float values[96];
};
struct Thousand {
  float values[1000];
};

__global__ void fill_shared(int) { ladder::shared_storage<Thousand>().values[threadIdx.x] = 1; }

struct CountsInstances {
  static inline int alive = 0;
  CountsInstances() { ++alive; }
  ~CountsInstances() {
    if (threadIdx.x < blockDim.x) --alive;  // built-in variables still work while a thread is unwound
  }
};

}  // namespace

TEST_CASE("every thread of a ragged grid runs once") {
  set_options({});
  float* values = nullptr;
  REQUIRE(cudaMalloc(&values, 1000 * sizeof(float)) == cudaSuccess);
  ladder::copy_to_device(values, std::vector<float>(1000, 1).data(), 1000 * sizeof(float));
  ladder::launch(scale, {.name = "scale", .grid = 8, .block = 128}, values, 1000, 3);  // 3 becomes a double
  for (const float value : ladder::download(values, 1000)) REQUIRE(value == 3);
  CHECK(last_launch().blocks == 8);
  CHECK(last_launch().threads == 1024);
  REQUIRE(cudaFree(values) == cudaSuccess);
}

TEST_CASE("built-in variables follow CUDA's order in three dimensions") {
  std::atomic<int> wrong{0};
  std::vector<int> seen(3 * 2 * 2 * 4 * 3 * 2);
  const Shape shape{.block = Dim3(4, 3, 2), .grid = Dim3(3, 2, 2)};
  run(shape, {}, [&] {
    if (gridDim.x != 3 || gridDim.y != 2 || gridDim.z != 2 || blockDim.x != 4 || blockDim.y != 3) ++wrong;
    const unsigned rank = threadIdx.x + 4 * (threadIdx.y + 3 * threadIdx.z);
    if (rank != current_thread_ids->rank) ++wrong;
    const unsigned block = blockIdx.x + 3 * (blockIdx.y + 2 * blockIdx.z);
    ++seen[block * 24 + rank];
  });
  CHECK(wrong == 0);
  CHECK(seen == std::vector<int>(seen.size(), 1));
}

TEST_CASE(
    "elect_one is true in one lane of each warp, each time the same, and not on all schedules the first") {
  for (const Schedule& schedule : all_schedules()) {
    INFO("schedule " << schedule.name());
    std::vector<unsigned> elected;
    run({.block = 2 * 32 + 8, .grid = 1}, schedule, [&] {
      if (ptx::elect_one()) elected.push_back(threadIdx.x);
      if (threadIdx.x % 32 < 4) return;
      CHECK(ptx::elect_one() == std::count(elected.begin(), elected.end(), threadIdx.x));
    });
    std::sort(elected.begin(), elected.end());
    CHECK(elected == (schedule.order == Order::round_robin ? std::vector<unsigned>{0, 32, 64}
                                                           : std::vector<unsigned>{31, 63, 71}));
  }
}

TEST_CASE("a launch beyond the limits is refused like on a GPU") {
  CHECK_THROWS_AS(ladder::launch(scale, {.grid = 1, .block = 1025}, nullptr, 0, 1), ladder::CudaError);
  CHECK_THROWS_WITH(
      ladder::launch(scale, {.name = "none", .grid = dim3(1, 1, 0), .block = 1}, nullptr, 0, 1),
      ContainsSubstring("launch of kernel 'none' (the grid is empty, as where a number of tiles is rounded "
                        "down, not up: grid 1 x 1 x 0, "));
  CHECK_THROWS_WITH(ladder::launch(scale, {.name = "none", .grid = 1, .block = 0}, nullptr, 0, 1),
                    ContainsSubstring("launch of kernel 'none' (the block is empty: grid 1 x 1 x 1, "));
  CHECK_THROWS_AS(ladder::launch(scale, {.grid = 1, .block = 1, .shared_bytes = 228 * 1024}, nullptr, 0, 1),
                  ladder::CudaError);
  CHECK_THROWS_WITH(
      ladder::launch(scale, {.name = "odd", .grid = 3, .block = 1, .cluster = 2}, nullptr, 0, 1),
      ContainsSubstring("launch of kernel 'odd' (the grid is not a multiple of the cluster: grid 3 "
                        "x 1 x 1, block 1 x 1 x 1, cluster 2 x 1 x 1, 0 bytes of dynamic shared "
                        "memory) at kernel/test_launch.cu:"));
}

TEST_CASE("a cluster of more than eight blocks is refused, as a GPU does without the attribute for it") {
  ladder::launch(scale, {.grid = 8, .block = 1, .cluster = 8}, nullptr, 0, 1);
  for (const unsigned blocks : {9u, 16u}) {
    try {
      ladder::launch(scale, {.name = "wide", .grid = blocks, .block = 1, .cluster = blocks}, nullptr, 0, 1);
      FAIL("no error");
    } catch (const ladder::CudaError& error) {
      CHECK(error.code == cudaErrorInvalidClusterSize);
      CHECK_THAT(error.what(), ContainsSubstring("launch of kernel 'wide' (a cluster has at most 8 blocks;"));
      CHECK_THAT(error.what(), ContainsSubstring("error has occurred due to cluster misconfiguration"));
    }
  }
}

TEST_CASE("shared storage larger than the launch reserved is named") {
  set_options({});
  try {
    ladder::launch(fill_shared, {.name = "fill", .grid = 1, .block = 1, .shared_bytes = 512}, 0);
    FAIL("no failure");
  } catch (const Failure& failure) {
    CHECK_THAT(failure.what(),
               ContainsSubstring("kernel 'fill': shared_storage of 4000 bytes, but the launch"));
    CHECK_THAT(failure.what(), ContainsSubstring("block (0,0,0) warp 0 lane 0 at test_launch.cu:"));
    CHECK_THAT(failure.what(), ContainsSubstring("schedule round-robin/late"));
  }
}

TEST_CASE("a failure destroys what the threads hold, and the next launch works") {
  CountsInstances::alive = 0;
  const Shape shape{.block = 64};
  for (const Schedule& schedule : fixed_schedules()) {
    const std::string text = failure(shape, schedule, [] {
      const CountsInstances instance;
      if (threadIdx.x == 40) __trap();
      __syncthreads();
    });
    CHECK_THAT(text, ContainsSubstring("__trap()"));
    CHECK_THAT(text, ContainsSubstring("warp 1 lane 8"));
    CHECK(CountsInstances::alive == 0);
    CHECK(failure(shape, schedule, [] { __syncthreads(); }).empty());
  }
}

TEST_CASE("an exception that leaves a kernel becomes a failure") {
  const std::string text = failure({.block = 64}, {}, [] {
    __syncthreads();
    if (threadIdx.x == 3) throw std::runtime_error("no such tile");
    __syncthreads();
  });
  CHECK_THAT(text, ContainsSubstring("an exception left the kernel: no such tile"));
  CHECK_THAT(text, ContainsSubstring("lane 3"));
}

TEST_CASE("many failing launches leave nothing behind") {
  for (int i = 0; i < 2000; ++i) {
    const std::string text = failure({.block = 64, .grid = 2}, {}, [] {
      if (threadIdx.x == 63) __trap();
      __syncthreads();
    });
    REQUIRE(!text.empty());
  }
}

TEST_CASE("the failure of the first block is reported on any number of OS threads") {
  for (int os_threads : {1, 2, 4}) {
    try {
      run(
          {.block = 32, .grid = 64}, {},
          [] {
            if (blockIdx.x >= 5) __trap();
          },
          os_threads);
      FAIL("no failure");
    } catch (const Failure& failure) {
      CHECK_THAT(failure.what(), ContainsSubstring("block (5,0,0)"));
    }
  }
}

#ifdef CPU_DEVICE_ASAN
TEST_CASE("AddressSanitizer guards both ends of shared memory and of device memory") {
  set_options({});
  char* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 100) == cudaSuccess);
  int guarded = 0;
  run({.block = 1, .shared_bytes = 100}, {}, [&] {
    char* shared = ladder::shared_storage<char[100]>();
    for (char* begin : {shared, memory}) {
      guarded += __asan_address_is_poisoned(begin - 1) && __asan_address_is_poisoned(begin + 100) &&
                 !__asan_region_is_poisoned(begin, 100);
    }
  });
  CHECK(guarded == 2);
  const std::string text = failure({.block = 1, .shared_bytes = 128}, {}, [&] {
    copy_async(ladder::shared_storage<char[128]>(), memory + 96, 16, 16, Location::current());
  });
  CHECK_THAT(text, ContainsSubstring(
                       "cp.async: its source of 16 bytes is outside of an allocation in global memory"));
  REQUIRE(cudaFree(memory) == cudaSuccess);
}
#endif

TEST_CASE("device operations outside of a kernel are refused") {
  CHECK_THROWS_AS(__syncthreads(), std::logic_error);
}

TEST_CASE("threads of all blocks of a cluster meet in cluster.sync") {
  for (const Schedule& schedule : fixed_schedules()) {
    std::vector<int> arrived(4);
    std::atomic<int> wrong{0};
    run({.block = 32, .grid = 4, .cluster = 2}, schedule, [&] {
      if (threadIdx.x == 0) ++arrived[blockIdx.x];
      cpu_device::cluster_barrier(Location::current());
      if (arrived[blockIdx.x ^ 1] != 1) ++wrong;
    });
    CHECK(wrong == 0);
  }
}

#ifndef CPU_DEVICE_ASAN  // which may keep local variables elsewhere
TEST_CASE("local variables are NaN until they are written, in every block and every launch") {
  set_options({});
  static std::atomic<int> not_nan;
  not_nan = 0;
  const auto kernel = +[](Hundred) {
    float sums[128];
    asm volatile("" : : "r"(sums) : "memory");  // the compiler cannot know what they hold
    for (float& sum : sums) {
      if (!std::isnan(sum)) ++not_nan;
      sum = 1;
    }
    asm volatile("" : : "r"(sums) : "memory");
  };
  for (int i = 0; i < 2; ++i) ladder::launch(kernel, {.name = "kernel", .grid = 4, .block = 32}, Hundred{});
  CHECK(not_nan == 0);
}
#endif

}  // namespace launch_test
