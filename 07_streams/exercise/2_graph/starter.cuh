/// @file
/// Exercise 07.2, beyond the lesson: a schedule over several streams as a CUDA graph.
///
/// A round is six small batches, each an upload, a kernel and a download, through three streams. So small
/// that queueing takes the host longer than the work takes the device; and rounds are all the same, but for
/// what is in host memory. Capture one round, make the graph launchable once, and launch it for every round.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <functional>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 4096, kThreads = 64, kStreams = 3, kBatches = 6;
constexpr size_t kBytes = kElements * sizeof(float);

/// What a round reads and writes: host memory, pinned, kBatches * kElements of both; and memory of the device
/// for one batch of each stream. An event orders nothing before it has been recorded.
struct Round {
  const float* x;
  float* y;
  std::array<ladder::DeviceBuffer<float>, kStreams> data = {ladder::DeviceBuffer<float>(kElements),
                                                            ladder::DeviceBuffer<float>(kElements),
                                                            ladder::DeviceBuffer<float>(kElements)};
  std::array<ladder::Stream, kStreams> streams = {ladder::make_stream(), ladder::make_stream(),
                                                  ladder::make_stream()};
  ladder::Event fork = ladder::make_order_event(), join = ladder::make_order_event();
};

__global__ void __launch_bounds__(kThreads) scale_and_add(float* data) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = 2 * data[i] + 1;
}

/// Queues upload, kernel and download of a batch in streams[stream].
inline void enqueue_batch(Round& round, int batch, int stream_number) {
  const cudaStream_t stream = round.streams[stream_number].get();
  float* const data = round.data[stream_number].data();
  const size_t first = size_t(batch) * kElements;
  CUDA_CHECK(cudaMemcpyAsync(data, round.x + first, kBytes, cudaMemcpyHostToDevice, stream));
  ladder::launch(scale_and_add,
                 {.name = "scale_and_add",
                  .grid = dim3(kElements / kThreads),
                  .block = dim3(kThreads),
                  .stream = stream},
                 data);
  CUDA_CHECK(cudaMemcpyAsync(round.y + first, data, kBytes, cudaMemcpyDeviceToHost, stream));
}

/// Runs the round `count` times. Each time `prepare` first writes x, and `collect` at last reads y: between
/// them, all batches must have been through the device.
inline void run(Round& round, int count, const std::function<void()>& prepare,
                const std::function<void()>& collect) {
  // Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
  // >>> yours
  (void)round, (void)count, (void)prepare, (void)collect;
  // <<<
}

}  // namespace exercise
