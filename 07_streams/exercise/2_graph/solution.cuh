/// @file
/// Exercise 07.2, beyond the lesson: a schedule over several streams as a CUDA graph.
///
/// A round is six small batches, each an upload, a kernel and a download, through three streams. They are
/// so small that queueing them takes the host longer than the work takes the device; and all rounds are the
/// same, except for what is in host memory. Capture one round, make the graph launchable once, and launch it
/// for every round.
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

/// Queues upload, kernel and download of a batch in streams[stream_number].
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

/// Runs the round `count` times. Each time `prepare` first writes x, and `collect` reads y at the end:
/// between them, all batches must have been through the device.
inline void run(Round& round, int count, const std::function<void()>& prepare,
                const std::function<void()>& collect) {
  // Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
  // >>> yours
  const cudaStream_t first = round.streams[0].get();
  CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  CUDA_CHECK(cudaEventRecord(round.fork.get(), first));
  for (int s = 1; s < kStreams; ++s)  // a stream that waits for the capture joins it
    CUDA_CHECK(cudaStreamWaitEvent(round.streams[s].get(), round.fork.get(), 0));
  for (int batch = 0; batch < kBatches; ++batch) enqueue_batch(round, batch, batch % kStreams);
  for (int s = 1; s < kStreams; ++s) {
    CUDA_CHECK(cudaEventRecord(round.join.get(), round.streams[s].get()));
    CUDA_CHECK(cudaStreamWaitEvent(first, round.join.get(), 0));
  }
  cudaGraph_t captured = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(first, &captured));
  const ladder::Graph graph(captured);
  cudaGraphExec_t instantiated = nullptr;
  CUDA_CHECK(cudaGraphInstantiate(&instantiated, graph.get(), 0));
  const ladder::GraphExec exec(instantiated);

  for (int i = 0; i < count; ++i) {
    prepare();
    CUDA_CHECK(cudaGraphLaunch(exec.get(), first));
    CUDA_CHECK(cudaStreamSynchronize(first));
    collect();
  }
  // <<<
}

}  // namespace exercise
