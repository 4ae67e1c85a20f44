/// @file
/// Exercise 02.3, beyond the lesson: A comes as fp8, and each group of its values has a scale.
///
/// A quantised model stores its weights as e4m3: 4 bits of exponent, 3 of mantissa, half the bytes of bf16.
/// The range of that is small, so each group of 32 values in a row has an fp32 scale, and what is meant is
/// value * scale. The kernel multiplies bf16 as before; only the loader of A knows of fp8. Write it: a thread
/// loads 16 values at once, widens and scales them, and rounds once to bf16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"

namespace exercise {

constexpr ladder::TileShape kTile{32, 32, 64};
constexpr int kGroup = 32;  ///< values of a row of A that share a scale
constexpr int kChunk = 16;  ///< values of A, and bytes, that a thread loads at once
constexpr int kThreads = kTile.m * kTile.k / kChunk;

/// C = A * B; A [M, K], B [K, N] and C [M, N] are row-major, K a multiple of kChunk.
struct Problem {
  const __nv_fp8_e4m3* a;  ///< begins at a multiple of 16 bytes
  const float* scales;     ///< [M, K / kGroup, rounded up]
  const __nv_bfloat16* b;
  float* c;
  int M, N, K;
};

struct SharedStorage {
  alignas(16) __nv_bfloat16 a[kTile.m][kTile.k];
  __nv_bfloat16 b[kTile.k][kTile.n];
};

/// Called by all threads of a block: smem.a[i][j] becomes the value of A at (first_row + i, first_k + j),
/// times its scale, rounded to bf16. What lies outside of A is zero. first_k is a multiple of kTile.k.
/// A __nv_fp8x4_e4m3 is four values, `__x` their 32 bits; static_cast<float4> widens them. __ldg() of a uint4
/// loads 16 bytes at once; without it compilers of the CPU device may load the parts that you use one by one.
__device__ inline void load_a(SharedStorage& smem, const Problem& p, int first_row, int first_k) {
  // Read 02_tiled/README.md and common/device/tile_share.cuh.
  // >>> yours
  (void)smem, (void)p, (void)first_row, (void)first_k;
  // <<<
}

__device__ inline void load_b(SharedStorage& smem, const Problem& p, int first_k, int first_col) {
  for (int i = threadIdx.x; i < kTile.k * kTile.n; i += kThreads) {
    const int k = first_k + i / kTile.n, col = first_col + i % kTile.n;
    const bool inside = k < p.K && col < p.N;
    smem.b[i / kTile.n][i % kTile.n] = inside ? p.b[k * p.N + col] : __float2bfloat16(0);
  }
}

/// A warp has every fourth row of the block's tile of C, a lane one column.
__global__ void __launch_bounds__(kThreads) gemm(const Problem p) {
  constexpr int kWarps = kThreads / kTile.n, kRows = kTile.m / kWarps;
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int first_row = blockIdx.y * kTile.m, first_col = blockIdx.x * kTile.n;
  const int warp = threadIdx.x / kTile.n, lane = threadIdx.x % kTile.n;
  float sums[kRows] = {};
  for (int first_k = 0; first_k < p.K; first_k += kTile.k) {
    load_a(smem, p, first_row, first_k);
    load_b(smem, p, first_k, first_col);
    __syncthreads();
    for (int k = 0; k < kTile.k; ++k) {
      const float b = __bfloat162float(smem.b[k][lane]);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        sums[i] = __fmaf_rn(__bfloat162float(smem.a[warp + i * kWarps][k]), b, sums[i]);
    }
    __syncthreads();  // all have read the tiles: the next may come
  }
  for (int i = 0; i < kRows; ++i) {
    const int row = first_row + warp + i * kWarps, col = first_col + lane;
    if (row < p.M && col < p.N) p.c[row * p.N + col] = sums[i];
  }
}

inline void launch_gemm(const Problem& p) {
  ladder::launch(gemm,
                 {.name = "fp8_inputs",
                  .grid = dim3(ladder::tiles_over(p.N, kTile.n), ladder::tiles_over(p.M, kTile.m)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 p);
}

}  // namespace exercise
