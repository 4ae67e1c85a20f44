/// @file
/// Exercise 07.6: a pool whose memory goes back.
///
/// Every batch needs a workspace on the device for a moment: a kernel in the stream `makers` writes it, a
/// kernel in the stream `users` reads it. It comes from a pool, and is allocated and freed in the order of
/// streams. Many batches are a round; between rounds somebody waits for the device.
///
///   - The pool never needs more than two workspaces, however many batches are queued.
///   - The pool keeps them from round to round: to ask the device for memory again costs more than a batch.
///   - After the last round it has given all of it back to the device, before anybody destroys it.
///   - While batches are queued, the host waits for nothing, and one batch may be made while the one before
///     is used.
///
/// A pool gives memory out again only to an allocation that comes after its free: in the same stream, or by
/// an event. (On a GPU it may also find that a free has happened by then; the CPU device does not rely on
/// luck. A GPU also reserves memory in pieces of tens of MiB, and gives a piece back whole: let the pool keep
/// 64 MiB or more.)
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/launch.cuh"

namespace exercise {

constexpr int kElements = 4096, kThreads = 64, kInFlight = 2;
constexpr size_t kWorkspaceBytes = size_t(2) << 20;  // of which these kernels use a part

using Pool = std::unique_ptr<CUmemPoolHandle_st, ladder::CudaDeleter<cudaMemPoolDestroy>>;

/// A pool of the current device, as CUDA makes it.
inline Pool make_pool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CUDA_CHECK(cudaGetDevice(&properties.location.id));
  cudaMemPool_t pool = nullptr;
  CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
  return Pool(pool);
}

/// Batch b has the events number b % kInFlight.
struct Pipeline {
  Pool pool = make_pool();
  ladder::Stream makers = ladder::make_stream(), users = ladder::make_stream();
  std::array<ladder::Event, kInFlight> made{ladder::make_order_event(), ladder::make_order_event()};
  std::array<ladder::Event, kInFlight> freed{ladder::make_order_event(), ladder::make_order_event()};
};

__global__ void __launch_bounds__(kThreads) make(float* workspace, const float* x) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  workspace[i] = 2 * x[i];
}
__global__ void __launch_bounds__(kThreads) use(const float* workspace, float* y) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  y[i] = workspace[i] + 1;
}

inline ladder::LaunchConfig in_stream(const char* name, const ladder::Stream& stream) {
  return {.name = name, .grid = dim3(kElements / kThreads), .block = dim3(kThreads), .stream = stream.get()};
}

// Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
// >>> yours
/// Called once, before the first batch.
inline void prepare(Pipeline& pipeline) {
  uint64_t keep = UINT64_MAX;  // two workspaces are too few: a GPU reserves memory in larger pieces
  CUDA_CHECK(cudaMemPoolSetAttribute(pipeline.pool.get(), cudaMemPoolAttrReleaseThreshold, &keep));
}

/// Queues a batch, y = 2 * x + 1. Batches are counted from 0, and on from round to round.
inline void enqueue(Pipeline& pipeline, int batch, const float* x, float* y) {
  const cudaStream_t makers = pipeline.makers.get(), users = pipeline.users.get();
  const cudaEvent_t made = pipeline.made[batch % kInFlight].get(),
                    freed = pipeline.freed[batch % kInFlight].get();
  // After the free of the batch that had the memory before: so the pool may give it out again.
  if (batch >= kInFlight) CUDA_CHECK(cudaStreamWaitEvent(makers, freed, 0));
  void* memory = nullptr;
  CUDA_CHECK(cudaMallocFromPoolAsync(&memory, kWorkspaceBytes, pipeline.pool.get(), makers));
  float* const workspace = static_cast<float*>(memory);
  ladder::launch(make, in_stream("make", pipeline.makers), workspace, x);
  CUDA_CHECK(cudaEventRecord(made, makers));

  CUDA_CHECK(cudaStreamWaitEvent(users, made, 0));
  ladder::launch(use, in_stream("use", pipeline.users), workspace, y);
  CUDA_CHECK(cudaFreeAsync(workspace, users));
  CUDA_CHECK(cudaEventRecord(freed, users));
}

/// Called once, after the last batch has been queued. When it returns, the pool has no memory.
inline void finish(Pipeline& pipeline) {
  CUDA_CHECK(cudaStreamSynchronize(pipeline.users.get()));
  CUDA_CHECK(cudaMemPoolTrimTo(pipeline.pool.get(), 0));
}
// <<<

}  // namespace exercise
