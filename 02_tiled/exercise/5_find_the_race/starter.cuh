/// @file
/// Exercise 02.5: find the mistake.
///
/// A tiled kernel multiplies matrices whose values were quantised: each group of 32 values in a row of A has
/// a scale, and a tile is as wide as a group. The marked lines are all there, and hold one mistake. Runs are
/// nearly always right. Let the CPU device run it and read its report, then mend the kernel. It needs no more
/// barriers than it has.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"

namespace exercise {

constexpr int kTile = 32;  ///< rows and columns of every tile; values in a group
constexpr int kRows = 4;   ///< of C, that a thread computes
constexpr int kThreads = kTile * kTile / kRows;

/// C = A · B, where a value of A is q * scale; all row-major. M, N and K are multiples of kTile.
struct Problem {
  const float *q, *scales, *b;  ///< [M, K], [M, K / kTile], [K, N]
  float* c;                     ///< [M, N]
  int M, N, K;
};

struct SharedStorage {
  float q[kTile][kTile], b[kTile][kTile];
  float scales[kTile];  ///< of the rows of q
};

/// A block computes a tile of C, a warp four of its rows, a lane one column.
__global__ void __launch_bounds__(kThreads) gemm(const Problem p) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const int me = threadIdx.x, column = me % kTile, top = me / kTile * kRows;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int steps = p.K / kTile;
  float sums[kRows] = {};
  // Read 02_tiled/README.md and docs/concepts/how_to_read_the_errors.md.
  // >>> yours
  const auto fetch_scale = [&](int step) {  // a thread for each row of the tile
    if (me < kTile) smem.scales[me] = p.scales[(first_row + me) * steps + step];
  };
  fetch_scale(0);
  for (int step = 0; step < steps; ++step) {
    for (int row = top; row < top + kRows; ++row) {
      smem.q[row][column] = p.q[(first_row + row) * p.K + step * kTile + column];
      smem.b[row][column] = p.b[(step * kTile + row) * p.N + first_column + column];
    }
    __syncthreads();  // the tiles and their scales are complete
    for (int i = 0; i < kRows; ++i) {
      float product = 0;
      for (int k = 0; k < kTile; ++k) product += smem.q[top + i][k] * smem.b[k][column];
      sums[i] += smem.scales[top + i] * product;
    }
    if (step + 1 < steps) fetch_scale(step + 1);
    __syncthreads();  // all have read the tiles
  }
  // <<<
  for (int i = 0; i < kRows; ++i) p.c[(first_row + top + i) * p.N + first_column + column] = sums[i];
}

inline void launch_gemm(const Problem& p) {
  ladder::launch(gemm,
                 {.name = "find_the_race",
                  .grid = dim3(p.N / kTile, p.M / kTile),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage)},
                 p);
}

}  // namespace exercise
