/// @file
/// The sketch that portable.cuh corrects has two faults. Either alone ends, on the CPU device, in a report of
/// who waits for whom. On a GPU these kernels would hang, so that there this file is not built.
#include <cooperative_groups.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cuda/pipeline>
#include <string>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/testing/gemm_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::testing::for_each_schedule;

namespace {

constexpr int kSlots = 4, kTiles = 2 * kSlots, kThreads = 128, kLoaderThreads = 32;

struct SharedStorage {
  cuda::pipeline_shared_state<cuda::thread_scope_block, kSlots> pipe;
};

/// The handshakes of the sketch, without its tiles. `with_roles` mends its first fault, `refills` the second.
/// @param handed [kThreads] the tiles that each thread loaded or took
__global__ void skeleton(bool with_roles, bool refills, int* const handed) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const auto block = cooperative_groups::this_thread_block();
  const bool loads = threadIdx.x < kLoaderThreads;
  const auto role = loads ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe =
      with_roles ? cuda::make_pipeline(block, &smem.pipe, role) : cuda::make_pipeline(block, &smem.pipe);
  if (loads) {
    for (int kt = 0; kt < (refills ? kTiles : kSlots); ++kt) {
      pipe.producer_acquire();
      pipe.producer_commit();
      ++handed[threadIdx.x];
    }
  } else {
    for (int kt = 0; kt < kTiles; ++kt) {
      pipe.consumer_wait();
      pipe.consumer_release();
      ++handed[threadIdx.x];
    }
  }
}

/// The tiles that each thread loaded or took.
std::vector<int> run(bool with_roles, bool refills) {
  ladder::DeviceBuffer<int> handed(std::vector<int>(kThreads, 0));
  ladder::launch(
      skeleton,
      {.name = "skeleton", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      with_roles, refills, handed.data());
  return ladder::download(handed.data(), kThreads);
}

/// What the CPU device says of a kernel that it stops.
std::string report(bool with_roles, bool refills) {
  try {
    run(with_roles, refills);
  } catch (const cpu_device::Failure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("04: a loader that stops when every slot was filled once leaves compute waiting") {
  for_each_schedule([] {
    const std::string text = report(/*with_roles=*/true, /*refills=*/false);
    CHECK_THAT(text, ContainsSubstring("deadlock"));
    CHECK_THAT(text, ContainsSubstring("in consumer_wait for pipeline.produced[0]"));
    CHECK_THAT(text, ContainsSubstring("32 of 32 arrivals missing"));
    CHECK_THAT(text, !ContainsSubstring("in producer_acquire"));
  });
}

TEST_CASE("04: without roles the pipeline waits for commits of threads that only compute") {
  for_each_schedule([] {
    const std::string text = report(/*with_roles=*/false, /*refills=*/true);
    CHECK_THAT(text, ContainsSubstring("deadlock"));
    CHECK_THAT(text, ContainsSubstring("in consumer_wait for pipeline.produced[0]"));
    CHECK_THAT(text, ContainsSubstring("96 of 128 arrivals missing"));
    CHECK_THAT(text, ContainsSubstring("in producer_acquire for pipeline.consumed[0]"));
  });
}

TEST_CASE("04: with roles and refills the sketch hands over every tile, and comes to its end") {
  for_each_schedule(
      [] { CHECK(run(/*with_roles=*/true, /*refills=*/true) == std::vector<int>(kThreads, kTiles)); });
}
