/// @file
/// Lessons 04 and 05 without TMA, for every GPU from sm_80 on: the same roles, pipelines and walk.
///
/// What is different is who copies. TMA is one thread and an engine that counts bytes; cp.async is a whole
/// warp that computes addresses, 16 bytes a lane. So the loader is two warps, and its barrier counts threads:
/// each arrives by cp.async.mbarrier.arrive.noinc, which the hardware does for it when its copies have
/// landed. The thread goes on to the next slot at once. The storer is a warp that copies, too. mma.sync
/// multiplies.
///
/// With one slot this is lesson 04's kernel, with a ring of them lesson 05's. The slots decide what shared
/// memory a block needs: RTX cards (sm_86, 89 and 120) give it 99 KB, an A100 (sm_80) 163 KB.
#pragma once
#include <algorithm>
#include <cstdint>

#include "common/cuda/launch.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/device/cores.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson04::without_tma {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};  ///< k is a choice of lesson 04: see kSlotK
using Core = MmaSyncCore<kTile.n, 32, 64>;
constexpr int kComputeWarps = kTile.m / Core::kRows * kWarpsPerWarpgroup, kLoaderWarps = 2, kStorerWarps = 1;
constexpr int kFirstLoaderWarp = kComputeWarps, kStorerWarp = kFirstLoaderWarp + kLoaderWarps;
constexpr int kComputeThreads = kComputeWarps * kWarp, kLoaderThreads = kLoaderWarps * kWarp;
constexpr int kThreads = (kStorerWarp + kStorerWarps) * kWarp;
constexpr int kChunk = 8, kPanel = 64;  ///< elements in 16 bytes, and in a row of a panel

/// The ring, and a staging tile for C.
template <int kSlots, int kSlotK>
struct SharedStorage {
  SwizzledTile<kTile.m, kSlotK> a[kSlots];
  SwizzledTile<kSlotK, kTile.n> b[kSlots];
  SwizzledTile<kTile.m, kTile.n> c;
  Pipeline<kSlots> pipe_lc;
  Pipeline<1> pipe_cs;
};

/// This loader thread starts to copy its chunks of the tile at (first_row, first_column) of a matrix. Eight
/// neighbours copy a row of a panel, a whole line of 128 bytes. Zeros outside the matrix are part of the
/// copies, too: the loader's arrival speaks for its copies and not for ordinary stores.
template <int kRows, int kColumns>
__device__ __forceinline__ void copy_tile(SwizzledTile<kRows, kColumns>& tile, const __nv_bfloat16* matrix,
                                          int rows, int columns, int first_row, int first_column) {
  const int thread = static_cast<int>(threadIdx.x) - kComputeThreads;
  constexpr int kThreadsPerRow = kPanel / kChunk, kRowStep = kLoaderThreads / kThreadsPerRow;
  const int my_row = thread / kThreadsPerRow, my_column = thread % kThreadsPerRow * kChunk;
#pragma unroll
  for (int panel = 0; panel < kColumns; panel += kPanel) {
    const int column = panel + my_column;
    const int rows_left = first_column + column < columns ? rows - first_row : 0;
    const __nv_bfloat16* const source =
        matrix + static_cast<size_t>(first_row + my_row) * columns + first_column + column;
#pragma unroll 4
    for (int i = 0; i < kRows; i += kRowStep)
      ptx::cp_async_16(tile.chunk(my_row + i, column), source + static_cast<size_t>(i) * columns,
                       my_row + i < rows_left ? 16 : 0);
  }
}

// [load_tiles]
/// Two warps fill the slots, tile after tile. Every thread copies, waits and arrives for itself.
template <int kSlotK>
__device__ __forceinline__ void load_tiles(auto& smem, const Gemm& p, const TileWalk& walk, int k_steps) {
  Producer pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until all compute warps have released it
      copy_tile(smem.a[slot], p.a, p.m, p.k, tile.row * kTile.m, step * kSlotK);
      copy_tile(smem.b[slot], p.b, p.k, p.n, step * kSlotK, tile.column * kTile.n);
      // Arrives at the slot's barrier when this thread's copies have landed.
      ptx::cp_async_mbarrier_arrive_noinc(pipe_lc.barrier());
      pipe_lc.producer_commit_bytes();
    }
  }
}
// [load_tiles]

/// Writes a warp's sums to the staging tile, as bf16. sm_80 has no stmatrix; the swizzle keeps these stores
/// of 4 bytes free of bank conflicts.
__device__ __forceinline__ void stage_pairs(const Core& core, SwizzledTile<kTile.m, kTile.n>& staging,
                                            int my_rows) {
  constexpr int kSumsPerStrip = Core::kStripColumns / 2;
#pragma unroll
  for (int strip = 0; strip < Core::kStrips; ++strip) {
    const StripOrigin origin = Core::origin(strip);
    const int row = my_rows + origin.row + lane_index() / 4, column = origin.column + lane_index() % 4 * 2;
    const float* const sums = &core.d[strip * kSumsPerStrip];
#pragma unroll
    for (int i = 0; i < kSumsPerStrip; i += 4) {
      *reinterpret_cast<uint32_t*>(&staging.at(row, 2 * i + column)) = pack_bf16(sums[i], sums[i + 1]);
      *reinterpret_cast<uint32_t*>(&staging.at(row + 8, 2 * i + column)) =
          pack_bf16(sums[i + 2], sums[i + 3]);
    }
  }
}

/// Each warp multiplies its rows; together they hand finished tiles to the storer.
__device__ __forceinline__ void compute_tiles(auto& smem, const TileWalk& walk, int k_steps) {
  const int my_rows = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  for ([[maybe_unused]] const auto tile : walk) {
    Core core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.finish();
      __syncwarp();  // all lanes have read: one may arrive for all
      pipe_lc.consumer_release(lane_index() == 0);
    }
    // [k_loop]

    pipe_cs.producer_acquire();  // waits until the storer has read the tile before
    stage_pairs(core, smem.c, my_rows);
    pipe_cs.producer_commit();
  }
}

/// One warp copies what is staged to global memory, 16 bytes a lane.
__device__ __forceinline__ void store_tiles(auto& smem, const Gemm& p, const TileWalk& walk) {
  Consumer pipe_cs(smem.pipe_cs);
  constexpr int kLanesPerRow = kTile.n / kChunk, kRowStep = kWarp / kLanesPerRow;
  const int my_row = lane_index() / kLanesPerRow, my_column = lane_index() % kLanesPerRow * kChunk;
  for (const auto tile : walk) {
    pipe_cs.consumer_wait();
    const int column = tile.column * kTile.n + my_column;
#pragma unroll 8
    for (int i = my_row; i < kTile.m; i += kRowStep) {
      const int row = tile.row * kTile.m + i;
      if (row < p.m && column < p.n)
        *reinterpret_cast<uint4*>(&p.c[static_cast<size_t>(row) * p.n + column]) =
            *reinterpret_cast<const uint4*>(smem.c.chunk(i, my_column));
    }
    __syncwarp();  // all lanes have read
    pipe_cs.consumer_release(lane_index() == 0);
  }
}

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8. A block has
/// its multiprocessor to itself: two would leave a thread 80 registers, and what mma.sync multiplies would
/// spill.
template <int kSlots, int kSlotK>
__global__ void __launch_bounds__(kThreads, 1) gemm(const Gemm p, const TileWalk walk, const int k_steps) {
  auto& smem = shared_storage<SharedStorage<kSlots, kSlotK>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(kLoaderThreads, kComputeWarps);
    smem.pipe_cs.init(kComputeThreads, kStorerWarps);
  }
  __syncthreads();

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kFirstLoaderWarp)
    compute_tiles(smem, walk, k_steps);
  else if (warp < kStorerWarp)
    load_tiles<kSlotK>(smem, p, walk, k_steps);
  else
    store_tiles(smem, p, walk);
  // [roles]
}

/// How many slots, up to `most`, a block has room for in so many bytes of shared memory; at least 1.
template <int kSlotK>
constexpr int slots_that_fit(int most, size_t bytes) {
  constexpr size_t kOne = sizeof(SharedStorage<1, kSlotK>), kTwo = sizeof(SharedStorage<2, kSlotK>);
  return bytes <= kOne ? 1 : std::min(most, 1 + static_cast<int>((bytes - kOne) / (kTwo - kOne)));
}

/// One block for each tile of C, but no more blocks than the GPU holds at one time.
/// @tparam kSlots slots of the ring; 1 in lesson 04
/// @tparam kSlotK columns of A, and rows of B, in a slot
template <int kSlots, int kSlotK>
void launch_gemm(const Gemm& p, int group, cudaStream_t stream) {
  using Smem = SharedStorage<kSlots, kSlotK>;
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n), group};
  ladder::launch(gemm<kSlots, kSlotK>,
                 {.name = "roles_without_tma",
                  .grid = persistent_grid<Smem>(gemm<kSlots, kSlotK>, kThreads, walk.tiles()),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(Smem),
                  .stream = stream},
                 p, walk, tiles_over(p.k, kSlotK));
}

}  // namespace lesson04::without_tma
