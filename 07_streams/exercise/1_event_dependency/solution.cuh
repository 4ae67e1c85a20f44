/// @file
/// Exercise 07.1: events between three streams.
///
/// Batches of a long vector in host memory go to the device, through a kernel, and back. Each of the three
/// steps has a stream of its own, so that steps of different batches can go on at once. The device has memory
/// for three batches: a ring of slots, as in lesson 05, where the host only says who waits for whom. Streams
/// have no order between them: write the loop over the batches, with an event wherever a step must not begin
/// before another has ended. The host itself waits for nothing in the loop. To wait for an event that has
/// never been recorded is legal and waits for nothing.
#pragma once
#include <cuda_runtime.h>

#include <array>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 4096, kThreads = 64, kSlots = 3;
constexpr size_t kBytes = kElements * sizeof(float);

/// Host memory, pinned: batch b is elements b * kElements .. (b + 1) * kElements - 1 of both.
struct Batches {
  const float* x;
  float* y;
  int count;
};

/// Memory of the device for one batch: the kernel writes y over x. Batch b uses slot b % kSlots.
struct Slot {
  ladder::DeviceBuffer<float> data{kElements};
  ladder::Event uploaded = ladder::make_order_event();
  ladder::Event computed = ladder::make_order_event();
  ladder::Event downloaded = ladder::make_order_event();
};

struct Pipeline {
  ladder::Stream uploads = ladder::make_stream(), kernels = ladder::make_stream(),
                 downloads = ladder::make_stream();
  std::array<Slot, kSlots> slots;
};

__global__ void __launch_bounds__(kThreads) scale_and_add(float* data) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = 2 * data[i] + 1;
}

// The three steps of a batch. Each is queued and returns at once.

inline void upload(const Batches& batches, int batch, Slot& slot, const ladder::Stream& stream) {
  CUDA_CHECK(cudaMemcpyAsync(slot.data.data(), batches.x + size_t(batch) * kElements, kBytes,
                             cudaMemcpyHostToDevice, stream.get()));
}

inline void compute(Slot& slot, const ladder::Stream& stream) {
  ladder::launch(scale_and_add,
                 {.name = "scale_and_add",
                  .grid = dim3(kElements / kThreads),
                  .block = dim3(kThreads),
                  .stream = stream.get()},
                 slot.data.data());
}

inline void download(const Batches& batches, int batch, const Slot& slot, const ladder::Stream& stream) {
  CUDA_CHECK(cudaMemcpyAsync(batches.y + size_t(batch) * kElements, slot.data.data(), kBytes,
                             cudaMemcpyDeviceToHost, stream.get()));
}

/// Queues the three steps of every batch, each in its stream of the pipeline.
inline void enqueue(const Batches& batches, Pipeline& pipeline) {
  auto& [uploads, kernels, downloads, slots] = pipeline;
  // Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
  // >>> yours
  for (int batch = 0; batch < batches.count; ++batch) {
    Slot& slot = slots[batch % kSlots];
    // Before its first lap a slot is free, and its event was never recorded.
    if (batch >= kSlots) CUDA_CHECK(cudaStreamWaitEvent(uploads.get(), slot.downloaded.get(), 0));
    upload(batches, batch, slot, uploads);
    CUDA_CHECK(cudaEventRecord(slot.uploaded.get(), uploads.get()));

    CUDA_CHECK(cudaStreamWaitEvent(kernels.get(), slot.uploaded.get(), 0));
    compute(slot, kernels);
    CUDA_CHECK(cudaEventRecord(slot.computed.get(), kernels.get()));

    CUDA_CHECK(cudaStreamWaitEvent(downloads.get(), slot.computed.get(), 0));
    download(batches, batch, slot, downloads);
    CUDA_CHECK(cudaEventRecord(slot.downloaded.get(), downloads.get()));
  }
  // <<<
}

/// y = 2 * x + 1 for all batches.
inline void run(const Batches& batches) {
  Pipeline pipeline;
  enqueue(batches, pipeline);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace exercise
