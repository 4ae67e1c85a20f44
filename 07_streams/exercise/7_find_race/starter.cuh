/// @file
/// Exercise 07.7: find the race.
///
/// A batch is uploaded, computed in two halves, and downloaded. The halves are independent, so each has a
/// stream of its own; uploads and downloads have theirs. There are two slots of device memory, and events
/// hold back what must not begin yet. It is all queued without a wait of the host, and nearly always right.
/// The check says which two operations have no order. There is one mistake in the marked lines; whatever
/// mends it is right, if the host still waits for nothing, and batches and halves still overlap.
#pragma once
#include <cuda_runtime.h>

#include <array>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 8192, kThreads = 64, kSlots = 2, kHalves = 2, kHalf = kElements / kHalves;
constexpr size_t kBytes = kElements * sizeof(float);

/// Host memory, pinned: batch b is elements b * kElements .. (b + 1) * kElements - 1 of both.
struct Batches {
  const float* x;
  float* y;
  int count;
};

/// Memory of the device for one batch: the kernels write y over x. Batch b uses slot b % kSlots.
struct Slot {
  ladder::DeviceBuffer<float> data{kElements};
  ladder::Event uploaded = ladder::make_order_event();
  ladder::Event computed = ladder::make_order_event();
  ladder::Event downloaded = ladder::make_order_event();
};

struct Pipeline {
  ladder::Stream uploads = ladder::make_stream(), downloads = ladder::make_stream();
  std::array<ladder::Stream, kHalves> halves = {ladder::make_stream(), ladder::make_stream()};
  std::array<Slot, kSlots> slots;
};

/// One half of a batch.
__global__ void __launch_bounds__(kThreads) scale_and_add(float* data) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = 2 * data[i] + 1;
}

inline void upload(const Batches& batches, int batch, Slot& slot, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(slot.data.data(), batches.x + size_t(batch) * kElements, kBytes,
                             cudaMemcpyHostToDevice, stream));
}
inline void compute_half(Slot& slot, int half, cudaStream_t stream) {
  ladder::launch(
      scale_and_add,
      {.name = "scale_and_add", .grid = dim3(kHalf / kThreads), .block = dim3(kThreads), .stream = stream},
      slot.data.data() + half * kHalf);
}
inline void download(const Batches& batches, int batch, const Slot& slot, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(batches.y + size_t(batch) * kElements, slot.data.data(), kBytes,
                             cudaMemcpyDeviceToHost, stream));
}

/// Queues all batches.
inline void enqueue(const Batches& batches, Pipeline& pipeline) {
  const cudaStream_t uploads = pipeline.uploads.get(), downloads = pipeline.downloads.get();
  // Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
  // >>> yours
  for (int batch = 0; batch < batches.count; ++batch) {
    Slot& slot = pipeline.slots[batch % kSlots];
    // A slot's first batch finds it free.
    if (batch >= kSlots) CUDA_CHECK(cudaStreamWaitEvent(uploads, slot.downloaded.get(), 0));
    upload(batches, batch, slot, uploads);
    CUDA_CHECK(cudaEventRecord(slot.uploaded.get(), uploads));

    for (int half = 0; half < kHalves; ++half) {
      const cudaStream_t half_stream = pipeline.halves[half].get();
      CUDA_CHECK(cudaStreamWaitEvent(half_stream, slot.uploaded.get(), 0));
      compute_half(slot, half, half_stream);
      CUDA_CHECK(cudaEventRecord(slot.computed.get(), half_stream));
    }

    // The download needs both halves.
    CUDA_CHECK(cudaStreamWaitEvent(downloads, slot.computed.get(), 0));
    download(batches, batch, slot, downloads);
    CUDA_CHECK(cudaEventRecord(slot.downloaded.get(), downloads));
  }
  // <<<
}

}  // namespace exercise
