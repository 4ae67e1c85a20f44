/// @file
/// Lesson 06: blocks of a cluster share two tiles of C, and add up their sums in each other's shared memory.
///
/// Added since step 1: a cluster has two pairs of blocks. Each pair multiplies one half of K. Then each block
/// sends its sums of half of the columns to the block with the other half of K. It receives that block's sums
/// of the other columns, completes them, and stores these columns. Twice as many blocks work on each tile.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/cluster.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06 {
using namespace ladder;

constexpr TileShape kTile{128, 256, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + kWarpgroup;
/// The launch gives each thread 168; compute takes what the movers give: 256 * 232 + 128 * 40 = 384 * 168.
constexpr int kMoverRegisters = 40, kComputeRegisters = 232;
/// A cluster is a pair of blocks, one below the other, for each part of K: rank = part of K * kBlocksM + row.
constexpr int kBlocksM = 2, kBlocksK = 2, kBlocks = kBlocksM * kBlocksK;
constexpr int kBRows = kTile.k / kBlocksM;  ///< rows of a tile of B that each of them loads
constexpr int kOwnN = kTile.n / kBlocksK;   ///< columns of C that a block completes and stores
constexpr int kStagedN = 64;                ///< columns of C that are handed over at a time: one panel

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

/// The ring: slot s holds steps s, s + kSlots, s + 2 * kSlots, ...
template <int kSlots>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
  SwizzledTile<kTile.m, kStagedN> c;
  Pipeline<kSlots> pipe_lc;                          ///< from the loader to compute
  float4 inbox[kWarpgroups][kOwnN / 8][kWarpgroup];  ///< sums from the peer
  Pipeline<kWarpgroups> pipe_sums;                   ///< a pair of barriers for each inbox: not a ring
  Pipeline<1> pipe_cs;                               ///< from compute to the storer
};

/// This block's place in its cluster.
__device__ __forceinline__ int block_m() { return static_cast<int>(ptx::cluster_block_rank()) % kBlocksM; }
__device__ __forceinline__ int block_k() { return static_cast<int>(ptx::cluster_block_rank()) / kBlocksM; }

// [load_tiles]
/// One thread keeps the ring full: it loads its block's tiles of A, and its rows of B for both blocks.
template <int kSlots>
__device__ __forceinline__ void load_tiles(SharedStorage<kSlots>& smem, const TensorMaps& maps,
                                           const ClusterWalk<kBlocks>& walk, int first_step, int after_step) {
  const uint16_t receivers = 0b11 << block_k() * kBlocksM;  // a bit for each rank
  Producer pipe_lc(smem.pipe_lc);
  for (const TileIndex tile : walk) {
    const int first_row = (tile.row * kBlocksM + block_m()) * kTile.m, first_column = tile.column * kTile.n;
    for (int step = first_step; step < after_step; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until both blocks have released it
      ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));  // from both loaders
      ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, first_row, full);
      for (int column = 0; column < kTile.n; column += 64)  // in panels; a block's own columns come first
        ptx::tma_load_multicast(&smem.b[slot].panels[column / 64][block_m() * kBRows], &maps.b,
                                first_column + (column + block_k() * kOwnN) % kTile.n,
                                step * kTile.k + block_m() * kBRows, full, receivers);
      pipe_lc.producer_commit_bytes();
    }
  }
}
// [load_tiles]

// [exchange_sums]
/// Two blocks, peers, have sums of all columns of a tile, each over its own half of K. Each sends the sums of
/// the second half of its columns, which the peer completes, and adds what it receives to the first half.
template <int kSlots>
__device__ __forceinline__ void exchange_sums(SharedStorage<kSlots>& smem, float (&d)[kTile.n / 2],
                                              uint32_t parity) {
  constexpr int kOwn = kOwnN / 2;  // sums of a thread that its block completes
  const int warpgroup = warpgroup_index(), thread = threadIdx.x % kWarpgroup;
  const uint32_t peer = ptx::cluster_block_rank() ^ kBlocksM;  // the same row, the other part of K
  auto& inbox = smem.inbox[warpgroup];
  ptx::Mbarrier* const full = &smem.pipe_sums.full[warpgroup];
  if (thread == 0) ptx::mbarrier_arrive_expect_bytes(full, sizeof(inbox));
  ptx::mbarrier_wait_cluster(&smem.pipe_sums.empty[warpgroup], parity ^ 1);  // the peer's inbox is free
  // st.async, to the address that mapa gives for the same place in the peer's memory
#pragma unroll
  for (int i = 0; i < kOwn; i += 4)
    ptx::store_async(&inbox[i / 4][thread], peer,
                     make_float4(d[kOwn + i], d[kOwn + i + 1], d[kOwn + i + 2], d[kOwn + i + 3]), full);
  ptx::mbarrier_wait_cluster(full, parity);
#pragma unroll
  for (int i = 0; i < kOwn; i += 4) {
    const float4 sum = inbox[i / 4][thread];
    d[i] += sum.x, d[i + 1] += sum.y, d[i + 2] += sum.z, d[i + 3] += sum.w;
  }
  __syncwarp();  // all lanes have read
  if (thread % kWarp == 0) ptx::mbarrier_arrive_remote_release(&smem.pipe_sums.empty[warpgroup], peer);
}
// [exchange_sums]

/// Each warpgroup multiplies its rows; together they hand finished tiles to the storer.
template <int kSlots>
__device__ __forceinline__ void compute_tiles(SharedStorage<kSlots>& smem, const ClusterWalk<kBlocks>& walk,
                                              int k_steps) {
  const int my_rows = Core::kRows * warpgroup_index(), thread = threadIdx.x % kWarpgroup;
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  uint32_t parity = 0;
  for ([[maybe_unused]] const TileIndex tile : walk) {
    Core core;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.finish();
      if (thread < kBlocksM) ptx::mbarrier_arrive_remote(pipe_lc.barrier(), thread + block_k() * kBlocksM);
      pipe_lc.consumer_release(false);  // goes on: this block's own barrier has its arrival
    }
    exchange_sums(smem, core.d, parity);
    parity ^= 1;
#pragma unroll  // registers have no addresses
    for (int column = 0; column < kOwnN; column += kStagedN) {
      pipe_cs.producer_acquire();  // waits until the storer has read the piece before
      stage_fragment(core.d, column, smem.c, my_rows);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      pipe_cs.producer_commit();
    }
  }
}

/// One thread sends what is staged to global memory.
template <int kSlots>
__device__ __forceinline__ void store_tiles(SharedStorage<kSlots>& smem, const TensorMaps& maps,
                                            const ClusterWalk<kBlocks>& walk) {
  Consumer pipe_cs(smem.pipe_cs);
  for (const TileIndex tile : walk) {
    for (int column = block_k() * kOwnN; column < (block_k() + 1) * kOwnN; column += kStagedN) {
      pipe_cs.consumer_wait();
      ptx::tma_store(&maps.c, &smem.c, tile.column * kTile.n + column,
                     (tile.row * kBlocksM + block_m()) * kTile.m);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();  // TMA has read what was staged
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent clusters: each walks over its share of the pairs of tiles of C. n and k are multiples of 8, and
/// k is more than kTile.k, so that each part of K has a step.
template <int kSlots>
__global__ void __launch_bounds__(kThreads, 1) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  const ClusterWalk<kBlocks> walk{tiles_over(p.m, kTile.m * kBlocksM), tiles_over(p.n, kTile.n)};
  const int k_steps = tiles_over(p.k, kTile.k);
  const int first_step = k_steps * block_k() / kBlocksK, after_step = k_steps * (block_k() + 1) / kBlocksK;

  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups * kBlocksM);  // how many arrivals fill a slot, and how many empty it
    smem.pipe_cs.init(kComputeThreads, 1);         // each compute thread writes a part, so each arrives
    smem.pipe_sums.init(1, kWarpsPerWarpgroup);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();  // no block sends before all barriers are initialised

  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_tiles(smem, walk, after_step - first_step);
  } else {
    ptx::setmaxnreg_dec<kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == kLoaderWarp) load_tiles(smem, maps, walk, first_step, after_step);
      if (warp == kStorerWarp) store_tiles(smem, maps, walk);
    }
  }
  __syncwarp();         // the elected threads have finished
  ptx::cluster_sync();  // no block exits while another may still reach its shared memory
}

/// One cluster for each pair of tiles of C, but no more than the GPU holds at one time.
template <int kSlots>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, 64),
                           make_tensor_map(p.b, p.k, p.n, kBRows, 64),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, 64)};
  const int tiles = tiles_over(p.m, kTile.m * kBlocksM) * tiles_over(p.n, kTile.n);
  ladder::launch(gemm<kSlots>,
                 {.name = "06_clusters_dsmem",
                  .grid = persistent_grid<SharedStorage<kSlots>>(gemm<kSlots>, kThreads, tiles, kBlocks),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<kSlots>),
                  .cluster = dim3(kBlocks),
                  .stream = stream},
                 maps, p);
}

}  // namespace lesson06
