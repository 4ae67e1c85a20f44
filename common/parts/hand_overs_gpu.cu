/// @file
/// What barriers take: one that all threads of a block wait at, and a pair over which two roles hand over.
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/parts/groups.hpp"
#include "common/parts/measured_gpu.cuh"
#include "common/ptx/multiprocessor.cuh"

namespace ladder::parts {
namespace {

constexpr int kTimes = 64;

__global__ void sync_threads(Notes notes) {
  for (int round = 0; round < kRounds; ++round) {
    __syncthreads();
    const uint64_t begin = ptx::clock_cycles();
    for (int i = 0; i < kTimes; ++i) __syncthreads();
    notes.add(0, round, static_cast<float>(ptx::clock_cycles() - begin) / kTimes);
  }
}

/// Two warpgroups hand one slot to each other: kArrivals threads of the first fill it, as many of the second
/// empty it. The others do nothing: a thread that only waits may miss a phase.
template <int kArrivals>
__global__ void hand_over(Notes notes) {
  auto& pipeline = shared_storage<Pipeline<1>>();
  if (threadIdx.x == 0) pipeline.init(kArrivals, kArrivals);
  __syncthreads();
  if (threadIdx.x % kWarpgroup % (kWarpgroup / kArrivals) != 0) return;
  if (threadIdx.x < kWarpgroup) {
    Producer producer(pipeline);
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t begin = ptx::clock_cycles();
      for (int i = 0; i < kTimes; ++i) {
        producer.producer_acquire();
        producer.producer_commit();
      }
      if (threadIdx.x == 0) notes.add(0, round, static_cast<float>(ptx::clock_cycles() - begin) / kTimes);
    }
  } else {
    Consumer consumer(pipeline);
    for (int i = 0; i < kTimes * kRounds; ++i) {
      consumer.consumer_wait();
      consumer.consumer_release();
    }
  }
}

template <int kArrivals>
void add_hand_over(const AddRow& add) {
  const LaunchConfig config = {.name = "hand_over",
                               .grid = dim3(device_info().multiprocessors),
                               .block = dim3(2 * kWarpgroup),
                               .shared_bytes = sizeof(Pipeline<1>)};
  add({"hand-over",
       {{"arrivals", std::to_string(kArrivals) + (kArrivals == 1 ? " thread arrives" : " threads arrive")},
        {"way", "there and back"}},
       measured(1, hand_over<kArrivals>, config)[0]});
}

/// The last clock of the launch before, on each multiprocessor.
constexpr int kMostMultiprocessors = 1024;

/// Figure 0: from the end of a block to the beginning of the next launch's block on the same multiprocessor.
__global__ void __launch_bounds__(384, 1) follow(Notes notes, unsigned long long* ends, int round) {
  const uint64_t begin = ptx::clock_cycles();
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned long long& end = ends[ptx::multiprocessor() % kMostMultiprocessors];
  notes.add(0, round, static_cast<float>(begin - end));
  end = ptx::clock_cycles();
}

/// Launches that follow each other in a stream, of blocks as lesson 05 has.
void add_launch(const AddRow& add) {
  DeviceBuffer<unsigned long long> ends(kMostMultiprocessors);
  const LaunchConfig config = {.name = "follow",
                               .grid = dim3(device_info().multiprocessors),
                               .block = dim3(384),
                               .shared_bytes = 200 * 1024};
  Figures noted(1, config);
  for (int round = 0; round < kRounds; ++round) launch(follow, config, noted.notes(), ends.data(), round);
  add({"launch", {{"what", "from a launch to the next in its stream"}}, noted.read()[0]});
}

}  // namespace

void measure_hand_overs(const AddRow& add) {
  for (const int threads : {128, 256, 384}) {
    const LaunchConfig config = {
        .name = "sync_threads", .grid = dim3(device_info().multiprocessors), .block = dim3(threads)};
    add({"syncthreads",
         {{"threads", std::to_string(threads) + " threads"}},
         measured(1, sync_threads, config)[0]});
  }
  add_hand_over<1>(add);
  add_hand_over<4>(add);
  add_hand_over<128>(add);
  add_launch(add);
}

}  // namespace ladder::parts
