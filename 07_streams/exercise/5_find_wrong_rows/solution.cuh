/// @file
/// Exercise 07.5: find why some batches are wrong once in a while.
///
/// Each batch has a scale and an offset of its own, and y = scale * x + offset. Three lanes take turns; a
/// lane has a stream, memory of the device, and a Line in pinned memory, which a kernel can read as well as
/// the host. Most days all batches are right. The check runs the pipeline by several schedules, all of which
/// a GPU may choose, and says which batch was wrong. There is one mistake in the marked lines; whatever mends
/// it is right, if the batches still overlap.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <memory>
#include <vector>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 4096, kThreads = 64, kLanes = 3;
constexpr size_t kBytes = kElements * sizeof(float);

/// How a batch is computed.
struct Line {
  float scale, offset;
};

/// Host memory, pinned: batch b is elements b * kElements .. (b + 1) * kElements - 1 of x and y.
struct Batches {
  const float* x;
  float* y;
  std::vector<Line> lines;  // of each batch
  int count() const { return static_cast<int>(lines.size()); }
};

/// Memory for Lines that the host and the device can read and write, `count` of them.
using PinnedLines = std::unique_ptr<Line, ladder::CudaDeleter<cudaFreeHost>>;
inline PinnedLines make_pinned_lines(size_t count) {
  void* memory = nullptr;
  CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(Line)));
  return PinnedLines(static_cast<Line*>(memory));
}

/// Batch b goes through lane b % kLanes.
struct Lane {
  ladder::DeviceBuffer<float> data{kElements};
  PinnedLines line = make_pinned_lines(1);
  ladder::Stream stream = ladder::make_stream();
};

// Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
// >>> yours
// By value: the launch keeps a copy of its arguments.
__global__ void __launch_bounds__(kThreads) scale_and_add(float* data, Line line) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = line.scale * data[i] + line.offset;
}

/// Queues all batches, and waits for them.
inline void run(const Batches& batches, std::array<Lane, kLanes>& lanes) {
  for (int batch = 0; batch < batches.count(); ++batch) {
    Lane& lane = lanes[batch % kLanes];
    const size_t first = size_t(batch) * kElements;
    CUDA_CHECK(cudaMemcpyAsync(lane.data.data(), batches.x + first, kBytes, cudaMemcpyHostToDevice,
                               lane.stream.get()));
    // The stream's order: after this upload, and after the last batch of this lane.
    ladder::launch(scale_and_add,
                   {.name = "scale_and_add",
                    .grid = dim3(kElements / kThreads),
                    .block = dim3(kThreads),
                    .stream = lane.stream.get()},
                   lane.data.data(), batches.lines[batch]);
    CUDA_CHECK(cudaMemcpyAsync(batches.y + first, lane.data.data(), kBytes, cudaMemcpyDeviceToHost,
                               lane.stream.get()));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}
// <<<

}  // namespace exercise
