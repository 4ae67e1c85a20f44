#if STAGE == 0
/// @file
/// The eight stages of `ladder learn capstone` in one source: a line belongs to the stages that the `#if`s
/// around it name. The last is the kernel of lesson 05. `--show` prints a stage; the build
/// writes each stage to a file (common/exercise/write_checks.cpp).
#endif
#pragma once
#include "common/cuda/launch.cuh"
#if STAGE >= 8
#include "common/cuda/persistent_grid.hpp"
#endif
#if STAGE >= 3
#include "common/cuda/tensor_map.hpp"
#endif
#if STAGE >= 4 && STAGE <= 7
#include "common/device/epilogue.cuh"
#endif
#if STAGE >= 6
#include "common/device/pipeline.cuh"
#endif
#if STAGE >= 2
#include "common/device/shared_storage.cuh"
#endif
#if STAGE >= 8
#include "common/device/staged_epilogue.cuh"
#endif
#if STAGE == 3
#include "common/device/swizzled_tile.cuh"
#endif
#if STAGE <= 7
#include "common/device/tile_order.cuh"
#endif
#include "common/device/tile_shape.cuh"
#if STAGE >= 8
#include "common/device/tile_walk.cuh"
#endif
#if STAGE >= 4
#include "common/device/wgmma_core.cuh"
#endif
#include "common/host/problem/gemm.hpp"
#if STAGE >= 5
#include "common/ptx/elect.cuh"
#endif
#if STAGE == 2
#include "common/ptx/mbarrier.cuh"
#endif
#if STAGE >= 8
#include "common/ptx/registers.cuh"
#endif
#if STAGE >= 3
#include "common/ptx/tma.cuh"
#endif

namespace mine {
using namespace ladder;

constexpr TileShape kTile{128, 256, 64};
#if STAGE <= 3
constexpr int kThreads = 256;
#endif
#if STAGE >= 4
using Core = WgmmaCore<kTile.n>;
#endif
#if STAGE == 4 || STAGE == 5
constexpr int kThreads = kTile.m / Core::kRows * kWarpgroup;  // a warpgroup multiplies kRows rows of A
#endif
#if STAGE >= 6
constexpr int kWarpgroups = kTile.m / Core::kRows;  // compute warpgroups; each multiplies kRows rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
#endif
#if STAGE == 6 || STAGE == 7
constexpr int kLoaderWarp = kComputeThreads / kWarp;
constexpr int kThreads = kComputeThreads + kWarp;
#endif
#if STAGE >= 8
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + kWarpgroup;
constexpr int kMoverRegisters = 40, kComputeRegisters = 232;  // 256 * 232 + 128 * 40 = 384 * 168
constexpr int kPieces = 2;                                    // pieces of C staged at the same time
constexpr int kPieceN = kPanelColumns;                        // columns of a piece
#endif
#if STAGE >= 7
constexpr int kSlots = 4;
#endif

#if STAGE >= 3
using TileA = SwizzledTile<kTile.m, kTile.k>;
#endif
#if STAGE >= 4
using TileB = SwizzledTile<kTile.k, kTile.n>;
#endif

#if STAGE >= 2
struct SharedStorage {
#if STAGE == 2
  float zero;
#endif
#if STAGE >= 3 && STAGE <= 6
  TileA a;
#endif
#if STAGE >= 4 && STAGE <= 6
  TileB b;
#endif
#if STAGE >= 7
  TileA a[kSlots];
  TileB b[kSlots];
#endif
#if STAGE >= 8
  SwizzledTile<kTile.m, kPieceN> c[kPieces];
#endif
#if STAGE <= 5
  ptx::Mbarrier full;
#endif
#if STAGE == 6
  Pipeline<1> pipe_lc;  // from the loader to compute
#endif
#if STAGE >= 7
  Pipeline<kSlots> pipe_lc;  // from the loader to compute
#endif
#if STAGE >= 8
  Pipeline<kPieces> pipe_cs;  // from compute to the storer
#endif
};

#endif
#if STAGE == 6 || STAGE == 7
__device__ __forceinline__ void load_tiles(SharedStorage& smem, const TensorMaps& maps, TileIndex tile,
                                           int k_steps) {
  Producer pipe_lc(smem.pipe_lc);
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  for (int step = 0; step < k_steps; ++step) {
#if STAGE == 6
    pipe_lc.producer_acquire();
#else
    const int slot = pipe_lc.producer_acquire();
#endif
    ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));
#if STAGE == 6
    ptx::tma_load(&smem.a, &maps.a, step * kTile.k, first_row, full);
    for (int column = 0; column < kTile.n; column += 64)
      ptx::tma_load(&smem.b.panels[column / 64], &maps.b, first_column + column, step * kTile.k, full);
#else
    ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, first_row, full);
    for (int column = 0; column < kTile.n; column += 64)
      ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, first_column + column, step * kTile.k, full);
#endif
    pipe_lc.producer_commit_bytes();
  }
}

__device__ __forceinline__ void compute_tiles(SharedStorage& smem, const Gemm& p, TileIndex tile,
                                              int k_steps) {
  const int my_rows = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Core core;
  for (int step = 0; step < k_steps; ++step) {
#if STAGE == 6
    pipe_lc.consumer_wait();
    core.start(smem.a, my_rows, smem.b, step == 0);
#else
    const int slot = pipe_lc.consumer_wait();
    core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
#endif
    core.finish();
    pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);
  }
  store_sums<Core>(core.d, p.c, tile.row * kTile.m + my_rows, tile.column * kTile.n, p.m, p.n);
}

#endif
#if STAGE >= 8
__device__ __forceinline__ void load_tiles(SharedStorage& smem, const TensorMaps& maps, TileWalk walk,
                                           int k_steps) {
  Producer pipe_lc(smem.pipe_lc);
  for (const TileIndex tile : walk) {
    const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();
      ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));
      const int k = step * kTile.k;
      ptx::tma_load(&smem.a[slot], &maps.a, k, first_row, full);
      for (int panel = 0; panel < TileB::kPanels; ++panel)
        ptx::tma_load(&smem.b[slot].panels[panel], &maps.b, first_column + panel * kPanelColumns, k, full);
      pipe_lc.producer_commit_bytes();
    }
  }
}

__device__ __forceinline__ void compute_tiles(SharedStorage& smem, TileWalk walk, int k_steps) {
  const int row_offset = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  for (auto tile = walk.begin(); tile != walk.end(); ++tile) {  // compute only counts the tiles
    Core core;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], row_offset, smem.b[slot], step == 0);
      core.finish();
      pipe_lc.consumer_release(threadIdx.x % kWarpgroup == 0);
    }
#pragma unroll  // a register's number must be known when compiling
    for (int column = 0; column < kTile.n; column += kPieceN) {
      const int piece = pipe_cs.producer_acquire();
      stage_fragment(core.d, column, smem.c[piece], row_offset);
      ptx::fence_proxy_async();
      __syncwarp();
      pipe_cs.producer_commit(threadIdx.x % kWarp == 0);
    }
  }
}

__device__ __forceinline__ void store_tiles(SharedStorage& smem, const TensorMaps& maps, TileWalk walk) {
  Consumer pipe_cs(smem.pipe_cs);
  bool sent = false;  // whether there is a piece before
  for (const TileIndex tile : walk) {
    const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
    for (int column = 0; column < kTile.n; column += kPieceN) {
      const int piece = pipe_cs.consumer_wait();
      ptx::tma_store(&maps.c, &smem.c[piece], first_column + column, first_row);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<1>();
      if (sent) pipe_cs.consumer_release();
      sent = true;
    }
  }
  ptx::tma_store_wait<0>();
}

#endif
#if STAGE <= 2
__global__ void __launch_bounds__(kThreads) gemm(const Gemm p) {
#else
__global__ void __launch_bounds__(kThreads, 1) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
#endif
#if STAGE >= 2
  auto& smem = shared_storage<SharedStorage>();
#endif
#if STAGE <= 7
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
#endif
#if STAGE <= 5
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
#endif
#if STAGE >= 8
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n)};
#endif
#if STAGE >= 5
  const int k_steps = tiles_over(p.k, kTile.k);
#endif

#if STAGE >= 2
  if (threadIdx.x == 0) {
#if STAGE <= 5
    ptx::mbarrier_init(&smem.full, 1);
#else
    smem.pipe_lc.init(1, kWarpgroups);
#endif
#if STAGE >= 8
    smem.pipe_cs.init(kLoaderWarp, 1);
    ptx::fence_mbarrier_init();  // as in the lessons; a block outside a cluster needs none
#endif
  }
  __syncthreads();

#endif
#if STAGE == 2
  if (threadIdx.x == 0) {
    smem.zero = 0;
    ptx::mbarrier_arrive(&smem.full);
  }
  ptx::mbarrier_wait(&smem.full, 0);
#endif
#if STAGE == 3
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(TileA));
    ptx::tma_load(&smem.a, &maps.a, 0, first_row, &smem.full);
  }
  ptx::mbarrier_wait(&smem.full, 0);
#endif
#if STAGE <= 3
  for (int i = threadIdx.x; i < kTile.m * kTile.n; i += kThreads) {
    const int row = i / kTile.n, column = i % kTile.n;
#if STAGE == 1
    const __nv_bfloat16 value = __float2bfloat16(0);
#endif
#if STAGE == 2
    const __nv_bfloat16 value = __float2bfloat16(smem.zero);
#endif
#if STAGE == 3
    const __nv_bfloat16 value = smem.a.at(row, column % kTile.k);
#endif
    if (first_row + row < p.m && first_column + column < p.n)
      p.c[(first_row + row) * p.n + first_column + column] = value;
  }
#endif
#if STAGE == 4
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(TileA) + sizeof(TileB));
    ptx::tma_load(&smem.a, &maps.a, 0, first_row, &smem.full);
    for (int column = 0; column < kTile.n; column += 64)
      ptx::tma_load(&smem.b.panels[column / 64], &maps.b, first_column + column, 0, &smem.full);
  }
  ptx::mbarrier_wait(&smem.full, 0);
  Core core;
  const int my_rows = Core::kRows * warpgroup_index();
  core.start(smem.a, my_rows, smem.b, true);
  core.finish();
  store_sums<Core>(core.d, p.c, first_row + my_rows, first_column, p.m, p.n);
#endif
#if STAGE == 5
  Core core;
  const int my_rows = Core::kRows * warpgroup_index();
  for (int step = 0; step < k_steps; ++step) {
    if (threadIdx.x < kWarp && ptx::elect_one()) {
      ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(TileA) + sizeof(TileB));
      ptx::tma_load(&smem.a, &maps.a, step * kTile.k, first_row, &smem.full);
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_load(&smem.b.panels[column / 64], &maps.b, first_column + column, step * kTile.k,
                      &smem.full);
    }
    ptx::mbarrier_wait(&smem.full, step % 2);
    core.start(smem.a, my_rows, smem.b, step == 0);
    core.finish();
    __syncthreads();
  }
  store_sums<Core>(core.d, p.c, first_row + my_rows, first_column, p.m, p.n);
#endif
#if STAGE >= 6
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
#if STAGE >= 8
    ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_tiles(smem, walk, k_steps);
  } else {
    ptx::setmaxnreg_dec<kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
      if (warp == kStorerWarp) store_tiles(smem, maps, walk);
    }
  }
#else
    compute_tiles(smem, p, tile, k_steps);
  } else if (ptx::elect_one()) {
    load_tiles(smem, maps, tile, k_steps);
  }
#endif
#endif
}

inline void launch_gemm(const Gemm& p, cudaStream_t stream) {
#if STAGE == 3
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k), {}};
#endif
#if STAGE >= 4 && STAGE <= 7
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, 64),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, 64)};
#endif
#if STAGE >= 8
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, kPanelColumns),
                           make_tensor_map(p.b, p.k, p.n, kTile.k, kPanelColumns),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, kPanelColumns)};
#endif
  const int tiles = tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n);
#if STAGE == 1
  ladder::launch(gemm, {.name = "my_gemm", .grid = dim3(tiles), .block = dim3(kThreads), .stream = stream},
                 p);
#endif
#if STAGE == 2
  ladder::launch(gemm,
                 {.name = "my_gemm",
                  .grid = dim3(tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
#endif
#if STAGE >= 3 && STAGE <= 7
  ladder::launch(gemm,
                 {.name = "my_gemm",
                  .grid = dim3(tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 maps, p);
#endif
#if STAGE >= 8
  ladder::launch(gemm,
                 {.name = "my_gemm",
                  .grid = persistent_grid<SharedStorage>(gemm, kThreads, tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 maps, p);
#endif
}

}  // namespace mine
