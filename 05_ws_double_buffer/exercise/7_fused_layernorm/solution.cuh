/// @file
/// Exercise 05.7, beyond the lesson: layernorm, linear and GELU in one kernel.
///
/// out = gelu(layernorm(x) · w + bias). Three kernels would write the normalised rows and the sums to global
/// memory and read them again. Here a row of x has 128 elements, so that a block can hold 64 whole rows in
/// shared memory: normalise them on their way there, multiply, and finish the sums while they are in
/// registers.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/cores.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/epilogue_functors.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"

namespace exercise {

constexpr ladder::TileShape kTile{64, 64, 128};  ///< k: all of a row of x
constexpr float kEpsilon = 1e-5f;                ///< added to the variance
/// Each warp multiplies 16 rows.
using Core = ladder::MmaSyncCore<kTile.n, 16, kTile.n>;

/// All in device memory, row-major bf16: x [m, kTile.k], w [kTile.k, n], out [m, n]; gamma and beta have
/// kTile.k elements, bias has n, and n is a multiple of 8.
struct Layer {
  const __nv_bfloat16 *x, *gamma, *beta, *w, *bias;
  __nv_bfloat16* out;
  int m, n;
};

struct SharedStorage {
  ladder::SwizzledTile<kTile.m, kTile.k> a;  ///< rows of x, normalised: at(row, column)
  ladder::SwizzledTile<kTile.k, kTile.n> b;  ///< columns of w
};

/// The sum of all lanes' values, in every lane.
__device__ inline float warp_sum(float value) {
  for (int step = ladder::kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

/// Brings columns first_column .. of w to shared memory, zeros behind its last; 128 threads.
__device__ inline void load_weights(SharedStorage& smem, const Layer& p, int first_column) {
  for (int i = threadIdx.x; i < kTile.k * kTile.n; i += ladder::kWarpgroup) {
    const int row = i / kTile.n, column = i % kTile.n;
    smem.b.at(row, column) =
        first_column + column < p.n ? p.w[row * p.n + first_column + column] : __float2bfloat16(0);
  }
}

/// A block of 128 threads computes 64 x 64 elements of out, from (first_row, first_column) on.
/// layernorm(x) = (x - mean) / sqrt(variance + kEpsilon) * gamma + beta, with mean and variance of each row.
/// At hand: ladder::Gelu, and ladder::store_fragment, which leaves out what lies outside of out.
__device__ inline void fused(SharedStorage& smem, const Layer& p, int first_row, int first_column) {
  // Read docs/concepts/tensor_core_fragments.md and common/device/cores.cuh.
  // >>> yours
  constexpr int kRowsPerWarp = kTile.m / 4, kPerLane = kTile.k / ladder::kWarp;
  const int lane = ladder::lane_index();
  // A warp normalises its rows one by one: neighbouring lanes read neighbouring elements.
  for (int i = 0; i < kRowsPerWarp; ++i) {
    const int row = kRowsPerWarp * ladder::warp_in_warpgroup() + i;
    float x[kPerLane] = {}, sum = 0, squares = 0;
    if (first_row + row < p.m)
      for (int j = 0; j < kPerLane; ++j)
        x[j] = __bfloat162float(p.x[(first_row + row) * kTile.k + lane + ladder::kWarp * j]);
    for (const float value : x) sum += value;
    const float mean = warp_sum(sum) / kTile.k;
    for (const float value : x) squares += (value - mean) * (value - mean);
    const float scale = 1 / sqrtf(warp_sum(squares) / kTile.k + kEpsilon);
    for (int j = 0; j < kPerLane; ++j) {
      const int column = lane + ladder::kWarp * j;
      const float gamma = __bfloat162float(p.gamma[column]), beta = __bfloat162float(p.beta[column]);
      smem.a.at(row, column) = __float2bfloat16((x[j] - mean) * scale * gamma + beta);
    }
  }
  load_weights(smem, p, first_column);
  __syncthreads();

  Core core;
  core.start(smem.a, 0, smem.b, true);
  core.finish<0>();
#pragma unroll
  for (int i = 0; i < kTile.n / 2; ++i) {
    const int column = first_column + i / 4 * 8 + 2 * (lane % 4) + i % 2;
    core.d[i] = ladder::Gelu{}(core.d[i] + (column < p.n ? __bfloat162float(p.bias[column]) : 0));
  }
  ladder::store_fragment(core.d, p.out, first_row, first_column, p.m, p.n);
  // <<<
}

__global__ void __launch_bounds__(ladder::kWarpgroup) layer(const Layer p) {
  fused(ladder::shared_storage<SharedStorage>(), p, blockIdx.y * kTile.m, blockIdx.x * kTile.n);
}

inline void launch_layer(const Layer& p) {
  ladder::launch(layer,
                 {.name = "fused_layernorm",
                  .grid = dim3(ladder::tiles_over(p.n, kTile.n), ladder::tiles_over(p.m, kTile.m)),
                  .block = dim3(ladder::kWarpgroup),
                  .shared_bytes = sizeof(SharedStorage)},
                 p);
}

}  // namespace exercise
