/// @file
/// Exercise 03.2, beyond the lesson: stage an elementwise kernel, of any length and with any block.
///
/// out = relu((q * k) * scale) * v, element by element. There is nothing to share and little to compute, so
/// all that counts is how many copies are on their way: start the next element's copies before you wait
/// for this element's, so that at every wait two batches are on their way. A thread stages what it needs
/// itself, in a pipeline of its own: nobody else's copies are waited for, and no barrier is needed.
#pragma once
#include <cuda_runtime.h>

#include <cuda/pipeline>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kSlots = 2, kMaxThreads = 1024;

/// What a thread stages lies at its threadIdx.x.
struct SharedStorage {
  float q[kSlots][kMaxThreads], k[kSlots][kMaxThreads], v[kSlots][kMaxThreads];
};

/// Starts the copy of 4 bytes; the next producer_commit() closes the batch.
__device__ inline void copy(float* to, const float* from, cuda::pipeline<cuda::thread_scope_thread>& pipe) {
  cuda::memcpy_async(to, from, cuda::aligned_size_t<4>(4), pipe);
}

/// out[i] = relu((q[i] * k[i]) * scale) * v[i] for 0 <= i < n, whatever grid and block are. All four are in
/// device memory. cuda::pipeline_consumer_wait_prior<1>(pipe) waits for all batches but the last that was
/// committed.
__global__ void staged(const float* q, const float* k, const float* v, float* out, const float scale,
                       const int n) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  auto pipe = cuda::make_pipeline();
  // Read 03_double_buffer/README.md and 03_double_buffer/gemm.cuh.
  // >>> yours
  const int me = threadIdx.x, stride = gridDim.x * blockDim.x;
  const auto stage = [&](int i, int slot) {
    pipe.producer_acquire();
    if (i < n) {
      copy(&smem.q[slot][me], &q[i], pipe);
      copy(&smem.k[slot][me], &k[i], pipe);
      copy(&smem.v[slot][me], &v[i], pipe);
    }
    pipe.producer_commit();  // after the end an empty batch: the last one committed is always the next one
  };
  int slot = 0;
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  stage(first, slot);
  for (int i = first; i < n; i += stride, slot ^= 1) {
    stage(i + stride, slot ^ 1);
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    const float score = (smem.q[slot][me] * smem.k[slot][me]) * scale;
    out[i] = (score > 0 ? score : 0) * smem.v[slot][me];
    pipe.consumer_release();
  }
  // <<<
}

inline void launch_staged(const float* q, const float* k, const float* v, float* out, float scale, int n,
                          int blocks, int threads) {
  ladder::launch(
      staged,
      {.name = "staged", .grid = dim3(blocks), .block = dim3(threads), .shared_bytes = sizeof(SharedStorage)},
      q, k, v, out, scale, n);
}

}  // namespace exercise
