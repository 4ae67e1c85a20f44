/// @file
/// Waits that are bounded: on a GPU a barrier that nobody completes ends the program with a sentence. A trap
/// ends everything that a process can do with its GPU, so this is a program of its own, and its last test
/// case is the one that traps.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"
#include "common/ptx/thread_ids.cuh"

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int kSlots = 2, kRounds = 7;
constexpr int kConsumerWarps = 3;  // and behind them one that produces
constexpr int kThreads = (kConsumerWarps + 1) * ladder::kWarp;

struct SharedStorage {
  int slots[kSlots];
  ladder::Pipeline<kSlots> pipe;
};

/// One thread hands the numbers 0, 1, ... to three warps, whose first threads release them; block `forgets`
/// never does.
__global__ void hand_over(int* const sums, const unsigned forgets) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe.init(1, kConsumerWarps);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x / ladder::kWarp < kConsumerWarps) {
    ladder::Consumer<kSlots> filled(smem.pipe);
    int sum = 0;
    for (int round = 0; round < kRounds; ++round) {
      sum += smem.slots[filled.consumer_wait()];
      __syncwarp();
      filled.consumer_release(ladder::lane_index() == 0 && blockIdx.x != forgets);
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  } else if (ladder::lane_index() == 0) {
    ladder::Producer<kSlots> pipe(smem.pipe);
    for (int round = 0; round < kRounds; ++round) {
      smem.slots[pipe.producer_acquire()] = round;
      pipe.producer_commit();
    }
  }
}

void launch_hand_over(int* sums, unsigned blocks, unsigned forgets) {
  ladder::launch(hand_over,
                 {.name = "hand_over",
                  .grid = dim3(blocks),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 sums, forgets);
  CUDA_CHECK(cudaDeviceSynchronize());
}

void skip_unless_runnable() {
  try {
    if (ladder::device_info().code.architecture < ladder::kHopper) SKIP("needs code for sm_90 or later");
  } catch (const ladder::BadInput& error) {
    SKIP(error.what());
  }
}

}  // namespace

TEST_CASE("Bounded waits leave a handshake alone that is complete") {
  skip_unless_runnable();
  constexpr unsigned kBlocks = 500, kNobody = kBlocks;
  ladder::DeviceBuffer<int> sums(kBlocks);
  launch_hand_over(sums.data(), kBlocks, kNobody);
  for (const int sum : ladder::download(sums.data(), kBlocks)) CHECK(sum == kRounds * (kRounds - 1) / 2);
}

TEST_CASE("A wait that nobody ends becomes an error that says who waited for which slot and parity") {
  skip_unless_runnable();
  constexpr unsigned kBlocks = 20, kForgetful = 17;
  ladder::DeviceBuffer<int> sums(kBlocks);
  std::string message;
  try {
    launch_hand_over(sums.data(), kBlocks, kForgetful);
  } catch (const ladder::CudaError& error) {
    message = error.what();
  }
  // Both slots are filled once and never again.
  CHECK_THAT(message, ContainsSubstring("cudaDeviceSynchronize() failed"));
  CHECK_THAT(message,
             ContainsSubstring(
                 "block 17, warps 0-2 waited 200 ms for pipe.full[0], phase of parity 1: still pending"));
  CHECK_THAT(message,
             ContainsSubstring(
                 "block 17, warp 3 waited 200 ms for pipe.empty[0], phase of parity 0: still pending"));
}
