/// @file
/// Lesson 02, step 3: threads copy tiles in chunks of 16 bytes.
///
/// Added since step 2: a thread copies a chunk, 8 elements of a row, with one load and one store; so n and k
/// must be multiples of 8. A TileShare is a thread's share of the chunks of a tile, and moves on along k. A
/// PlainTile is an array of chunks.
#pragma once
#include "02_tiled/plain_tile.cuh"
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/host/problem/gemm.hpp"

namespace lesson02::chunks {
using namespace ladder;

constexpr TileShape kTile{128, 128, 32};
constexpr int kSums = 8;  ///< a thread computes kSums x kSums elements of C
constexpr int kSide = kTile.m / kSums, kThreads = kSide * kSide;  ///< the threads form a square

using TileA = PlainTile<kTile.m, kTile.k>;
using TileB = PlainTile<kTile.k, kTile.n>;

struct SharedStorage {
  TileA a;
  TileB b;
};

/// Each block computes a tile of C; n and k are multiples of 8, so that a chunk is one load.
/// Neighbouring threads have neighbouring columns, so that a warp reads neighbouring elements of B.
/// While one block loads, another one may compute.
__global__ void __launch_bounds__(kThreads, 2) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const int first_row = blockIdx.y * kTile.m, first_column = blockIdx.x * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  TileShare<TileA, kThreads> a_share(p.a, p.m, p.k, first_row, 0);
  TileShare<TileB, kThreads> b_share(p.b, p.k, p.n, 0, first_column);
  const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
  float sums[kSums * kSums] = {};

  // [k_loop]
  for (int step = 0; step < k_steps; ++step) {
    uint4 a_chunks[a_share.kChunks], b_chunks[b_share.kChunks];  // this thread's part of both tiles
    a_share.load(a_chunks);
    b_share.load(b_chunks);  // all loads are under way before the first store
    smem.a.store(a_chunks);
    smem.b.store(b_chunks);
    a_share.next_right();
    b_share.next_down();

    __syncthreads();  // the tiles are complete
#pragma unroll 8      // 96 instructions for each i: the loop itself costs little
    for (int i = 0; i < kTile.k; ++i) {
      float a[kSums], b[kSums];  // each is used kSums times
#pragma unroll
      for (int j = 0; j < kSums; ++j) {
        a[j] = __bfloat162float(smem.a[y + j * kSide][i]);
        b[j] = __bfloat162float(smem.b[i][x + j * kSide]);
      }
#pragma unroll
      for (int j = 0; j < kSums * kSums; ++j) sums[j] += a[j / kSums] * b[j % kSums];
    }
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
#pragma unroll
  for (int i = 0; i < kSums * kSums; ++i) {
    const int row = first_row + y + i / kSums * kSide, column = first_column + x + i % kSums * kSide;
    if (row < p.m && column < p.n) p.c[static_cast<size_t>(row) * p.n + column] = __float2bfloat16(sums[i]);
  }
}

/// One block for each tile of C: m is at most 65535 * kTile.m, as a grid has 65535 rows of blocks.
inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm,
                 {.name = "02_tiled",
                  .grid = dim3(tiles_over(p.n, kTile.n), tiles_over(p.m, kTile.m)),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02::chunks
