/// @file
/// Exercise 03.1: the handshake of a ring.
///
/// A block reverses each tile of a long vector: y[first + i] = x[first + kTile - 1 - i]. Tiles come through a
/// ring of four slots in shared memory, and every thread needs what other threads have copied. The copying
/// and the reversing are there; write the loop, with the four verbs of cuda::pipeline. All four slots are
/// filled at first, and each is filled again as soon as its tile has been released.
#pragma once
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cuda/pipeline>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kThreads = 64, kTile = 4 * kThreads, kSlots = 4;
using Pipe = cuda::pipeline<cuda::thread_scope_block>;

struct SharedStorage {
  alignas(16) float slots[kSlots][kTile];  ///< slot s holds tiles s, s + kSlots, s + 2 * kSlots, ...
  cuda::pipeline_shared_state<cuda::thread_scope_block, kSlots> pipe;
};

/// Starts the copy of this thread's 16 bytes of a tile to the tile's slot.
__device__ inline void copy(SharedStorage& smem, Pipe& pipe, const float* x, int tile) {
  cuda::memcpy_async(&smem.slots[tile % kSlots][4 * threadIdx.x], &x[tile * kTile + 4 * threadIdx.x],
                     cuda::aligned_size_t<16>(16), pipe);
}

/// Writes this thread's 4 elements of y from the tile's slot.
__device__ inline void reverse(const SharedStorage& smem, float* y, int tile) {
  for (int i = threadIdx.x; i < kTile; i += kThreads)
    y[tile * kTile + i] = smem.slots[tile % kSlots][kTile - 1 - i];
}

/// Called by all threads of the block: copies and reverses tiles 0 .. tiles - 1.
__device__ inline void stream(SharedStorage& smem, Pipe& pipe, const float* x, float* y, int tiles) {
  // Read docs/concepts/handshake_vocabulary.md and 03_double_buffer/variants/copies.cuh.
  // >>> yours
  int copied = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; copied < tiles && copied < tile + kSlots; ++copied) {
      pipe.producer_acquire();  // every thread has released the tile that the slot held
      copy(smem, pipe, x, copied);
      pipe.producer_commit();
    }
    pipe.consumer_wait();  // the copies of every thread have landed
    reverse(smem, y, tile);
    pipe.consumer_release();
  }
  // <<<
}

__global__ void __launch_bounds__(kThreads) reverse_tiles(const float* x, float* y, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  Pipe pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &smem.pipe);
  stream(smem, pipe, x, y, tiles);
}

inline void launch_reverse(const float* x, float* y, int tiles) {
  ladder::launch(
      reverse_tiles,
      {.name = "ring", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)}, x, y,
      tiles);
}

}  // namespace exercise
