/// @file
/// Exercise 07.4: a ring of pinned slots that a host function gives back.
///
/// Batches come from a function `fill` and their results go to a function `take`. The program has pinned
/// memory for three batches, so a slot serves many: the host fills it, the device uploads, computes and
/// downloads, and when the result has been taken, the slot is free. A host function, which is called in
/// the order of a stream, takes the result, so it knows when that is.
///
///   - `fill(batch, x)` is called by the host's thread, for batches 0, 1, 2, ...
///   - `take(batch, y)` is called by a host function, for batches 0, 1, 2, ... in this order, one at a
///     time. It does not call CUDA, and y must stay as it is until it has returned.
///   - The host waits for a slot that is not free, and at the end; for nothing else.
///   - When run() returns, all results have been taken.
///
/// Host functions of different streams have no order. What one is given a pointer to must still be there, and
/// unchanged, when it is called.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/guarded.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 4096, kThreads = 64, kSlots = 3;
constexpr size_t kBytes = kElements * sizeof(float);
constexpr std::chrono::seconds kPatience{10};  // as long as the host waits for a slot at most

using Fill = std::function<void(int batch, float* x)>;
using Take = std::function<void(int batch, const float* y)>;

using Pinned = std::unique_ptr<float, ladder::CudaDeleter<cudaFreeHost>>;
inline Pinned make_pinned() {
  void* memory = nullptr;
  CUDA_CHECK(cudaMallocHost(&memory, kBytes));
  return Pinned(static_cast<float*>(memory));
}

/// What one batch needs. Batch b uses slot b % kSlots.
struct Slot {
  Pinned x = make_pinned(), y = make_pinned();
  ladder::DeviceBuffer<float> data{kElements};
  ladder::Stream stream = ladder::make_stream();
  ladder::Event downloaded = ladder::make_order_event();
};

struct Ring {
  std::array<Slot, kSlots> slots;
  ladder::Stream takes = ladder::make_stream();
  /// Is the slot in use? The host's thread and host functions share this; update() and wait() hold its lock.
  ladder::Guarded<std::array<bool, kSlots>> busy{"a free slot"};
};

__global__ void __launch_bounds__(kThreads) scale_and_add(float* data) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = 2 * data[i] + 1;
}

/// Queues upload, kernel and download in the slot's stream.
inline void enqueue(Slot& slot) {
  CUDA_CHECK(
      cudaMemcpyAsync(slot.data.data(), slot.x.get(), kBytes, cudaMemcpyHostToDevice, slot.stream.get()));
  ladder::launch(scale_and_add,
                 {.name = "scale_and_add",
                  .grid = dim3(kElements / kThreads),
                  .block = dim3(kThreads),
                  .stream = slot.stream.get()},
                 slot.data.data());
  CUDA_CHECK(
      cudaMemcpyAsync(slot.y.get(), slot.data.data(), kBytes, cudaMemcpyDeviceToHost, slot.stream.get()));
}

// Read docs/concepts/streams_and_copy_engines.md and common/cuda/guarded.hpp.
// >>> yours
/// What the host function of a batch is given.
struct Job {
  Ring* ring;
  const Take* take;
  int batch;
};

/// The host function of a batch.
inline void finish(void* pointer) {
  const Job& job = *static_cast<const Job*>(pointer);
  const int number = job.batch % kSlots;
  (*job.take)(job.batch, job.ring->slots[number].y.get());
  job.ring->busy.update([&](auto& busy) { busy[number] = false; });
}

/// Runs `count` batches.
inline void run(Ring& ring, int count, const Fill& fill, const Take& take) {
  std::deque<Job> jobs;  // its elements stay where they are
  for (int batch = 0; batch < count; ++batch) {
    const int number = batch % kSlots;
    Slot& slot = ring.slots[number];
    ring.busy.wait([&](const auto& busy) { return !busy[number]; }, [&](auto& busy) { busy[number] = true; },
                   kPatience);
    fill(batch, slot.x.get());
    enqueue(slot);
    CUDA_CHECK(cudaEventRecord(slot.downloaded.get(), slot.stream.get()));
    CUDA_CHECK(cudaStreamWaitEvent(ring.takes.get(), slot.downloaded.get(), 0));
    jobs.push_back({&ring, &take, batch});
    CUDA_CHECK(cudaLaunchHostFunc(ring.takes.get(), finish, &jobs.back()));
  }
  CUDA_CHECK(cudaStreamSynchronize(ring.takes.get()));
}
// <<<

}  // namespace exercise
