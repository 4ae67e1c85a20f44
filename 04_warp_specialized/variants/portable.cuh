/// @file
/// Lesson 04 without TMA: one warp loads, three warps compute, and `cuda::pipeline` hands the slots over.
/// fp32 on CUDA cores, from sm_75 on; below sm_80 the library copies through registers.
///
/// Roles are often sketched like this, and the sketch hangs:
///
///     auto pipe = cuda::make_pipeline(block, &state);              // 1
///     if (warp == 0) {
///       for (int stage = 0; stage < kStages; ++stage) { ... }      // 2
///     } else {
///       for (int kt = 0; kt < k_tiles; ++kt) { ... }
///     }
///
/// 1. Without a role, every thread is a producer and a consumer. Each barrier of the pipeline then expects
///    all 128 threads, but only 32 of them ever commit and only 96 ever release: nobody gets past the first
///    tile.
/// 2. The loader stops when every slot has been filled once. Behind the last of those tiles compute waits
///    for ever.
///
/// Here each thread says its role, so that a slot is full after 32 commits and free after 96 releases; and
/// the loader goes through as many tiles as compute does, waiting for the slot of a tile to be free.
#pragma once
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cuda/pipeline>

#include <cstdint>

#include "common/cuda/launch.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson04::portable {

constexpr ladder::TileShape kTile{32, 32, 32};
constexpr int kLoaderWarps = 1, kComputeWarps = 3;
constexpr int kThreads = (kLoaderWarps + kComputeWarps) * ladder::kWarp;
/// A compute warp has every third row of the tile, a lane one column of it.
constexpr int kRowsPerWarp = ladder::tiles_over(kTile.m, kComputeWarps);
static_assert(kTile.n == ladder::kWarp && kTile.k == ladder::kWarp, "a warp copies and computes whole rows");

/// C = A · B, all row-major fp32 in device memory: A is [m, k], B is [k, n], C is [m, n], of any size.
struct Sgemm {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  int m = 0, n = 0, k = 0;
};

using Pipe = cuda::pipeline<cuda::thread_scope_block>;

/// The ring. Slot s holds tiles s, s + kSlots, s + 2 * kSlots, ... along k.
template <int kSlots>
struct SharedStorage {
  float a[kSlots][kTile.m][kTile.k];
  float b[kSlots][kTile.k][kTile.n];
  cuda::pipeline_shared_state<cuda::thread_scope_block, kSlots> pipe;
};

/// One warp copies a tile of a matrix of rows x columns. Copies of 4 bytes need no alignment, so that rows
/// may have any length. What lies outside the matrix becomes zero, by an ordinary store.
template <int kRows>
__device__ __forceinline__ void copy_tile(float (&tile)[kRows][ladder::kWarp], const float* matrix, int rows,
                                          int columns, int first_row, int first_column, Pipe& pipe) {
  const int lane = ladder::lane_index(), column = first_column + lane;
  for (int i = 0; i < kRows; ++i) {
    const int row = first_row + i;
    if (row < rows && column < columns)
      cuda::memcpy_async(&tile[i][lane], matrix + int64_t{row} * columns + column, sizeof(float), pipe);
    else
      tile[i][lane] = 0;
  }
}

/// One warp keeps the ring full: it runs up to kSlots tiles ahead of compute.
template <int kSlots>
__device__ __forceinline__ void load_tiles(SharedStorage<kSlots>& smem, Pipe& pipe, const Sgemm& p,
                                           int first_row, int first_column, int k_tiles) {
  for (int kt = 0; kt < k_tiles; ++kt) {
    const int slot = kt % kSlots;
    pipe.producer_acquire();  // waits until all 96 compute threads have released the slot
    copy_tile(smem.a[slot], p.a, p.m, p.k, first_row, kt * kTile.k, pipe);
    copy_tile(smem.b[slot], p.b, p.k, p.n, kt * kTile.k, first_column, pipe);
    pipe.producer_commit();  // an arrival now, for the zeros, and one when the copies have landed
  }
}

/// Three warps multiply what the ring brings, and store the tile of C.
template <int kSlots>
__device__ __forceinline__ void compute_tiles(SharedStorage<kSlots>& smem, Pipe& pipe, const Sgemm& p,
                                              int first_row, int first_column, int k_tiles) {
  const int warp = static_cast<int>(threadIdx.x) / ladder::kWarp - kLoaderWarps, lane = ladder::lane_index();
  float sum[kRowsPerWarp] = {};
  for (int kt = 0; kt < k_tiles; ++kt) {
    const int slot = kt % kSlots;
    pipe.consumer_wait();  // waits until the copies of all 32 loader threads have landed
    for (int k = 0; k < kTile.k; ++k) {
      const float b = smem.b[slot][k][lane];
#pragma unroll
      for (int i = 0; i < kRowsPerWarp; ++i) {
        const int row = warp + i * kComputeWarps;
        if (row < kTile.m) sum[i] += smem.a[slot][row][k] * b;  // 32 rows for 3 warps: one has a row less
      }
    }
    pipe.consumer_release();
  }
  const int column = first_column + lane;
#pragma unroll
  for (int i = 0; i < kRowsPerWarp; ++i) {
    const int row_in_tile = warp + i * kComputeWarps, row = first_row + row_in_tile;
    if (row_in_tile < kTile.m && row < p.m && column < p.n) p.c[int64_t{row} * p.n + column] = sum[i];
  }
}

/// Each block computes one tile of C.
template <int kSlots>
__global__ void __launch_bounds__(kThreads) gemm(const Sgemm p) {
  auto& smem = ladder::shared_storage<SharedStorage<kSlots>>();
  const bool loads = threadIdx.x < kLoaderWarps * ladder::kWarp;
  auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &smem.pipe,
                                  loads ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  const int tile = static_cast<int>(blockIdx.x), tile_columns = ladder::tiles_over(p.n, kTile.n);
  const int first_row = tile / tile_columns * kTile.m, first_column = tile % tile_columns * kTile.n;
  const int k_tiles = ladder::tiles_over(p.k, kTile.k);
  if (loads)
    load_tiles(smem, pipe, p, first_row, first_column, k_tiles);
  else
    compute_tiles(smem, pipe, p, first_row, first_column, k_tiles);
}

/// One block for each tile of C.
/// @throws ladder::CudaError if the launch is refused, as it is for an empty C.
template <int kSlots = 4>
void launch_gemm(const Sgemm& p, cudaStream_t stream = nullptr) {
  const int tiles = ladder::tiles_over(p.m, kTile.m) * ladder::tiles_over(p.n, kTile.n);
  ladder::launch(gemm<kSlots>,
                 {.name = "04_warp_specialized, portable",
                  .grid = dim3(tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlots>),
                  .stream = stream},
                 p);
}

}  // namespace lesson04::portable
