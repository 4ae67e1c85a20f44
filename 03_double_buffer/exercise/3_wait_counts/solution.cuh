/// @file
/// Exercise 03.3: how many batches may still be on their way?
///
/// Every thread weighs values with keys, 4 of each in every tile: score = |k|^2, out = score * v. Keys and
/// values come through a ring of three slots, in batches of their own, so that a thread may score while the
/// values are on their way. A thread reads only what it has copied itself, so there is no barrier; all that
/// protects it is the number that it gives to __pipeline_wait_prior. Write the loop, and choose that number
/// so that nothing is read too early, and the full ring stays full: while a tile is waited for, both batches
/// of the two after it are on their way. Whether empty batches follow the last tile is up to you.
#pragma once
#include <cuda_pipeline.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kThreads = 64, kTile = 4 * kThreads, kSlots = 3;

struct SharedStorage {
  float4 keys[kSlots][kThreads], values[kSlots][kThreads];  ///< slot s holds tiles s, s + kSlots, ...
};

/// Starts to copy this thread's 16 bytes and closes the batch.
__device__ inline void copy_batch(float4 (&to)[kThreads], const float* from, int tile) {
  __pipeline_memcpy_async(&to[threadIdx.x], &from[tile * kTile + 4 * threadIdx.x], sizeof(float4));
  __pipeline_commit();
}

__device__ inline float score_of(const float4 (&keys)[kThreads]) {
  const float4 k = keys[threadIdx.x];
  return k.x * k.x + k.y * k.y + k.z * k.z + k.w * k.w;
}

__device__ inline void weigh(float* out, int tile, float score, const float4 (&values)[kThreads]) {
  const float4 v = values[threadIdx.x];
  reinterpret_cast<float4*>(out)[tile * kThreads + threadIdx.x] =
      make_float4(score * v.x, score * v.y, score * v.z, score * v.w);
}

/// All tiles, 0 .. tiles - 1. As many batches as the slots hold are on their way. __pipeline_wait_prior(n)
/// waits for all batches of this thread but the n that were closed last.
__device__ inline void stream(SharedStorage& smem, const float* keys, const float* values, float* out,
                              int tiles) {
  // Read 03_double_buffer/README.md and 03_double_buffer/gemm.cuh.
  // >>> yours
  const auto start = [&](int tile) {
    if (tile >= tiles) return;
    copy_batch(smem.keys[tile % kSlots], keys, tile);
    copy_batch(smem.values[tile % kSlots], values, tile);
  };
  for (int tile = 0; tile < kSlots; ++tile) start(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = tile % kSlots;
    const int left = tiles - 1 - tile, later = left < kSlots - 1 ? left : kSlots - 1;
    __pipeline_wait_prior(2 * later + 1);  // all but its values, and two batches of each later tile
    const float score = score_of(smem.keys[slot]);
    __pipeline_wait_prior(2 * later);
    weigh(out, tile, score, smem.values[slot]);
    start(tile + kSlots);
  }
  // <<<
}

__global__ void __launch_bounds__(kThreads)
    weigh_values(const float* keys, const float* values, float* out, const int tiles) {
  stream(ladder::shared_storage<SharedStorage>(), keys, values, out, tiles);
}

inline void launch_weigh_values(const float* keys, const float* values, float* out, int tiles) {
  ladder::launch(weigh_values,
                 {.name = "wait_counts",
                  .grid = dim3(1),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 keys, values, out, tiles);
}

}  // namespace exercise
