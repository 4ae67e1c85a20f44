/// @file
/// Exercise 05.1: a product in flight while the tile before it is finished.
///
/// out = the sums over all rows of relu(x · w + bias). w is small and stays in shared memory; tiles of 64
/// rows of x come through a ring. For each tile the tensor cores work for 256 cycles (2 * 64 * 128 * 64
/// flops, 4096 a cycle). Then the threads take more than half as long to add up their part, and the tensor
/// cores idle. Write the loop of the compute warpgroup so that the next product runs while the threads add up
/// the last one. Two products need two cores, each by a name of its own: registers have no index at run time.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/cores.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kRows = 64, kDepth = 64;  ///< of a tile of x
constexpr int kColumns = 128;           ///< of w
constexpr int kSlots = 8;
constexpr int kThreads = ladder::kWarpgroup + ladder::kWarp;  ///< four warps compute, one thread loads
using Core = ladder::WgmmaCore<kColumns>;

struct SharedStorage {
  ladder::SwizzledTile<kRows, kDepth> x[kSlots];
  ladder::SwizzledTile<kDepth, kColumns> w;
  float2 bias[kColumns / 2];
  ladder::Pipeline<kSlots> pipe_lc;
  ptx::Mbarrier w_full;
};

struct TensorMaps {
  CUtensorMap x, w;
};

__device__ __forceinline__ float relu(float value) { return value < 0 ? 0 : value; }

/// What a thread has of the sums: of column 8j + 2 * (lane % 4) in of[2j], of the next one in of[2j + 1].
struct Sums {
  float of[kColumns / 4] = {};

  /// Adds this thread's part of a product, its two rows.
  __device__ __forceinline__ void add(const Core& product, const SharedStorage& smem) {
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const float2 bias = smem.bias[4 * j + ladder::lane_index() % 4];
      of[2 * j] += relu(product.d[4 * j] + bias.x) + relu(product.d[4 * j + 2] + bias.x);
      of[2 * j + 1] += relu(product.d[4 * j + 1] + bias.y) + relu(product.d[4 * j + 3] + bias.y);
    }
  }
};

/// One thread loads w once, and all tiles of x.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int tiles) {
  ptx::mbarrier_arrive_expect_bytes(&smem.w_full, sizeof(smem.w));
  for (int column = 0; column < kColumns; column += 64)
    ptx::tma_load(&smem.w.panels[column / 64], &maps.w, column, 0, &smem.w_full);
  ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = pipe_lc.producer_acquire();
    ptx::tma_load(&smem.x[slot], &maps.x, 0, tile * kRows, pipe_lc.expect_bytes(sizeof(smem.x[slot])));
    pipe_lc.producer_commit_bytes();
  }
}

/// All 128 threads multiply each tile of x by w, and add up. The number of tiles is even.
///
/// At hand: pipe_lc.consumer_wait(), which says the slot that is full, and pipe_lc.consumer_release(elected),
/// by which one thread gives the oldest slot back; core.start(smem.x[slot], 0, smem.w, true), which starts a
/// product into core.d; sums.add(core, smem). core.finish<1>() leaves the newest product running; after it,
/// ptx::keep_in_registers(core.d) before you read the sums. core.finish<0>() waits for all products, and
/// calls keep_in_registers itself.
__device__ inline void compute_tiles(SharedStorage& smem, int tiles, Sums& sums) {
  ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
  const bool elected = threadIdx.x == 0;
  // Read 05_ws_double_buffer/README.md and common/ptx/wgmma.cuh.
  // >>> yours
  const auto step = [&](Core& next, Core& last) {
    next.start(smem.x[pipe_lc.consumer_wait()], 0, smem.w, true);
    ptx::wgmma_wait_group<1>();  // all but the product that has just been started
    ptx::keep_in_registers(last.d);
    pipe_lc.consumer_release(elected);
    sums.add(last, smem);
  };
  Core even, odd;
  even.start(smem.x[pipe_lc.consumer_wait()], 0, smem.w, true);
  for (int tile = 2; tile < tiles; tile += 2) {
    step(odd, even);
    step(even, odd);
  }
  step(odd, even);
  odd.finish<0>();
  pipe_lc.consumer_release(elected);
  sums.add(odd, smem);
  // <<<
}

/// Row w of out has the sums of the rows that warp w computes. One block.
__global__ void __launch_bounds__(kThreads, 1)
    pooled(const __grid_constant__ TensorMaps maps, const float* bias, float* out, const int tiles) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, 1);
    ptx::mbarrier_init(&smem.w_full, 1);
    ptx::fence_mbarrier_init();
  }
  if (threadIdx.x < kColumns / 2)
    smem.bias[threadIdx.x] = make_float2(bias[2 * threadIdx.x], bias[2 * threadIdx.x + 1]);
  __syncthreads();
  if (threadIdx.x == ladder::kWarpgroup) load_tiles(smem, maps, tiles);
  if (threadIdx.x >= ladder::kWarpgroup) return;

  Sums sums;
  ptx::mbarrier_wait(&smem.w_full, 0);
  compute_tiles(smem, tiles, sums);
#pragma unroll
  for (int i = 0; i < kColumns / 4; ++i) {
    for (int step = 4; step < ladder::kWarp; step *= 2) sums.of[i] += __shfl_xor_sync(~0u, sums.of[i], step);
    if (ladder::lane_index() < 4)
      out[threadIdx.x / ladder::kWarp * kColumns + i / 2 * 8 + 2 * ladder::lane_index() + i % 2] = sums.of[i];
  }
}

inline void launch_pooled(const __nv_bfloat16* x, const __nv_bfloat16* w, const float* bias, float* out,
                          int tiles) {
  ladder::launch(
      pooled,
      {.name = "pooled", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(x, tiles * kRows, kDepth, kRows, kDepth),
                 ladder::make_tensor_map(w, kDepth, kColumns, kDepth, 64)},
      bias, out, tiles);
}

}  // namespace exercise
