/// @file
/// Exercise 07.8: what waits for what when a batch fails.
///
/// Eight batches go through three streams. Three things may fail: `fill`, or a call of CUDA, throws while
/// batches are queued, perhaps in the middle of one; a batch turns out to be bad, which the device finds out
/// and the host can read when the batch has been downloaded; and the device itself may fail, or hang. The
/// caller owns all memory, and fills or frees it as soon as run() is left, in whichever way.
///
///   - After an exception no further batch is begun. A bad batch stops nothing.
///   - When run() is left, nothing is in flight that uses the memory.
///   - But a device that hangs must not hang the program: run() waits for `patience` at most, however long
///     it took to queue, and then throws StillBusy, which tells the caller to keep the memory.
///     (cudaStreamSynchronize has no such limit.)
///   - StillBusy comes before everything else: the caller must keep the memory. Otherwise run() throws what
///     came first of all that has failed: the batch with the lowest number. If the device has failed, nobody
///     knows what is_bad holds: then what was thrown while queueing comes first, and the device's error last.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 1024, kThreads = 64, kBatches = 8, kStreams = 3;
constexpr size_t kBytes = kElements * sizeof(float);
constexpr float kBad = 1e6f;  // a batch with this in its x is bad

struct BadBatch : std::runtime_error {
  explicit BadBatch(int batch) : std::runtime_error("batch " + std::to_string(batch) + " is bad") {}
};
struct StillBusy : std::runtime_error {
  StillBusy() : std::runtime_error("the device does not end; its memory must be kept") {}
};

template <class T>
using Pinned = std::unique_ptr<T, ladder::CudaDeleter<cudaFreeHost>>;
template <class T>
Pinned<T> make_pinned(size_t count) {
  void* memory = nullptr;
  CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(T)));
  return Pinned<T>(static_cast<T*>(memory));
}

/// The memory of one batch. `is_bad` is 0 or 1 when the batch has been downloaded.
struct Slot {
  Pinned<float> x = make_pinned<float>(kElements), y = make_pinned<float>(kElements);
  Pinned<int> is_bad = make_pinned<int>(1);
  ladder::DeviceBuffer<float> data{kElements};
  ladder::DeviceBuffer<int> found_bad{1};
};

/// Batch b uses slot b and stream b % kStreams.
struct Pipeline {
  std::array<Slot, kBatches> slots;
  std::array<ladder::Stream, kStreams> streams{ladder::make_stream(), ladder::make_stream(),
                                               ladder::make_stream()};
  std::chrono::milliseconds patience{10'000};
};

/// Writes the batch's input. May throw.
using Fill = std::function<void(int batch, float* x)>;

__global__ void __launch_bounds__(kThreads) scale_and_add(float* data, int* found_bad) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (data[i] == kBad) *found_bad = 1;
  data[i] = 2 * data[i] + 1;
}

/// Queues all steps of a batch. Throws what `fill` throws, or CudaError; some steps may have been queued
/// then.
inline void enqueue(Pipeline& pipeline, int batch, const Fill& fill) {
  Slot& slot = pipeline.slots[batch];
  const cudaStream_t stream = pipeline.streams[batch % kStreams].get();
  CUDA_CHECK(cudaMemsetAsync(slot.found_bad.data(), 0, sizeof(int), stream));
  fill(batch, slot.x.get());
  CUDA_CHECK(cudaMemcpyAsync(slot.data.data(), slot.x.get(), kBytes, cudaMemcpyHostToDevice, stream));
  ladder::launch(scale_and_add,
                 {.name = "scale_and_add",
                  .grid = dim3(kElements / kThreads),
                  .block = dim3(kThreads),
                  .stream = stream},
                 slot.data.data(), slot.found_bad.data());
  CUDA_CHECK(cudaMemcpyAsync(slot.y.get(), slot.data.data(), kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(
      cudaMemcpyAsync(slot.is_bad.get(), slot.found_bad.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
}

/// Runs all batches. @throws what failed first, or StillBusy
inline void run(Pipeline& pipeline, const Fill& fill) {
  // Read docs/concepts/streams_and_copy_engines.md and common/cuda/error.hpp.
  // >>> yours
  std::exception_ptr thrown;
  int queued = 0;
  try {
    for (; queued < kBatches; ++queued) enqueue(pipeline, queued, fill);
  } catch (...) {
    thrown = std::current_exception();
  }

  // Also after an error: what has been queued, the first steps of the failed batch included, uses the
  // memory.
  const auto deadline = std::chrono::steady_clock::now() + pipeline.patience;
  cudaError_t at_the_end = cudaSuccess;
  for (const ladder::Stream& stream : pipeline.streams) {
    cudaError_t state = cudaErrorNotReady;
    while ((state = cudaStreamQuery(stream.get())) == cudaErrorNotReady)
      if (std::chrono::steady_clock::now() > deadline) throw StillBusy();
    if (at_the_end == cudaSuccess) at_the_end = state;
  }

  for (int batch = 0; batch < queued && at_the_end == cudaSuccess; ++batch)  // else it may not have arrived
    if (*pipeline.slots[batch].is_bad.get()) throw BadBatch(batch);
  if (thrown) std::rethrow_exception(thrown);
  CUDA_CHECK(at_the_end);
  // <<<
}

}  // namespace exercise
