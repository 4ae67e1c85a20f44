/// @file
/// Exercise 06.7, beyond the lesson: blocks that share a tile of C, without a cluster.
///
/// A small C has few tiles, and most SMs would have nothing to do. So several blocks split the sum over k of
/// one tile between them. They meet in global memory: each stores its partial product there and counts itself
/// as arrived, and the one that arrives last adds all of them up. No block waits for another, which may not
/// even have begun.
///
/// Write what a block does with its split, with one scheme only: thread 0 counts for its block by
/// `atomicAdd`, which orders nothing, and `__threadfence()`s give the order, on both sides. A fence covers
/// what its thread did before it, and what its thread knew of by a barrier before it. C must be the same bit
/// for bit in every run, so partial products are added in the order of the splits, whoever was last. And
/// counters are 0 again when the kernel has ended, for the next launch.
#pragma once
#include <cuda_runtime.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"

namespace exercise {

constexpr int kTile = 8, kThreads = kTile * kTile;  ///< a thread computes one element of C

/// C = A * B; A [M, K], B [K, N] and C [M, N] are row-major, M and N multiples of kTile.
struct Problem {
  const float *a, *b;
  float* c;
  float* partials;     ///< [splits, M, N], not initialised
  unsigned* arrivals;  ///< for each tile of C: 0 before the kernel, and after it
  int M, N, K;
};

struct SharedStorage {
  bool is_last;  ///< has every other block of the tile arrived before this one?
};

/// The sum over k = begin .. end - 1.
__device__ inline float partial_product(const Problem& p, int row, int col, int begin, int end) {
  float sum = 0;
  for (int k = begin; k < end; ++k) sum = __fmaf_rn(p.a[row * p.K + k], p.b[k * p.N + col], sum);
  return sum;
}

/// Called by all threads of a block, each with an element of the block's tile. `split` of `splits` has
/// k = split * length .. (split + 1) * length - 1, as far as they are below K, where length is K / splits,
/// rounded up. Every tile has a block for each split.
__device__ inline void add_split(SharedStorage& smem, const Problem& p, int tile, int row, int col, int split,
                                 int splits) {
  const int length = (p.K + splits - 1) / splits;
  // Read docs/concepts/memory_model.md and 06_clusters_dsmem/any_shape/stream_k.cuh.
  // >>> yours
  const int begin = min(split * length, p.K), end = min(begin + length, p.K);
  p.partials[(split * p.M + row) * p.N + col] = partial_product(p, row, col, begin, end);
  __syncthreads();  // all threads have stored: one may count for all
  if (threadIdx.x == 0) {
    __threadfence();  // release: the stores that the barrier told this thread of come before the count
    smem.is_last = atomicAdd(&p.arrivals[tile], 1u) == unsigned(splits - 1);
    __threadfence();  // acquire: the count comes before what is read after the next barrier
    if (smem.is_last) p.arrivals[tile] = 0;
  }
  __syncthreads();
  if (!smem.is_last) return;
  float sum = 0;
  for (int s = 0; s < splits; ++s) sum += p.partials[(s * p.M + row) * p.N + col];
  p.c[row * p.N + col] = sum;
  // <<<
}

__global__ void __launch_bounds__(kThreads) split_k(const Problem p) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int row = blockIdx.y * kTile + threadIdx.x / kTile, col = blockIdx.x * kTile + threadIdx.x % kTile;
  add_split(smem, p, blockIdx.y * gridDim.x + blockIdx.x, row, col, blockIdx.z, gridDim.z);
}

inline void launch_split_k(const Problem& p, int splits) {
  const dim3 grid(p.N / kTile, p.M / kTile, splits);
  ladder::launch(
      split_k,
      {.name = "split_k", .grid = grid, .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)}, p);
}

}  // namespace exercise
