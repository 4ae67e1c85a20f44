/// @file
/// Lesson 06: blocks of a cluster share two tiles of C, and add up their sums in each other's shared memory.
///
/// Added since step 3: both peers complete a tile, each half of its columns. So half as many sums go to each,
/// at the same time. A block loads its own columns first, so that the same registers hold them in all blocks.
#pragma once
#include "06_clusters_dsmem/cluster.cuh"
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
#include "common/ptx/elect.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06 {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;  ///< compute warpgroups; each multiplies kRows rows of A
constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
constexpr int kThreads = kComputeThreads + kWarpgroup;  ///< setmaxnreg acts on warpgroups: two warps idle
/// Two thirds of the threads take registers that the others give: 256 * 232 + 128 * 40 = 384 * 168.
constexpr int kMoverRegisters = 40, kComputeRegisters = 232;
constexpr int kBlocksM = 2, kBlocksK = 2, kBlocks = kBlocksM * kBlocksK;  ///< a pair for each part of K
constexpr int kBRows = kTile.k / kBlocksM;  ///< rows of a tile of B that each of them loads
constexpr int kOwnN = kTile.n / kBlocksK;   ///< columns of C that a block completes and stores
constexpr int kSumsPerThread = kOwnN / 2;   ///< that are sent to the peer; as many are kept
using Walk = ClusterWalk<kBlocks>;
constexpr int kPieces = 2;              ///< of C that are staged at one time
constexpr int kPieceN = kPanelColumns;  ///< columns of a piece

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

/// The ring: slot s holds steps s, s + kSlots, s + 2 * kSlots, ...
template <int kSlots>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
  SwizzledTile<kTile.m, kPieceN> c[kPieces];
  Pipeline<kSlots> pipe_lc;   ///< from the loader to compute
  Pipeline<kPieces> pipe_cs;  ///< from compute to the storer
  float4 inbox[kSumsPerThread / 4][kComputeThreads];
  ptx::Mbarrier inbox_full, peer_inbox_free;  ///< an inbox takes sums from the peer
};

// [load_tiles]
/// The loader: one thread loads its block's tiles of A, and its rows of B for both blocks.
template <class Smem>
__device__ __forceinline__ void load_tiles(Smem& smem, const TensorMaps& maps, Walk walk, int k_steps) {
  const uint16_t receivers = 0b11 << block_k() * kBlocksM;  // a bit for each rank
  Producer pipe_lc(smem.pipe_lc);
  for (const TileIndex tile : walk) {
    const int first_row = (tile.row * kBlocksM + block_m()) * kTile.m, first_column = tile.column * kTile.n;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();  // waits until both blocks have released it
      ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(TileA) + sizeof(TileB));  // from both loaders
      const int k = (step * kBlocksK + block_k()) * kTile.k;                            // parts take turns
      ptx::tma_load(&smem.a[slot], &maps.a, k, first_row, full);
      for (int panel = 0; panel < TileB::kPanels; ++panel)  // TMA moves a panel at a time, own columns first
        ptx::tma_load_multicast(&smem.b[slot].panels[panel][block_m() * kBRows], &maps.b,
                                first_column + (panel ^ block_k()) * kPanelColumns, k + block_m() * kBRows,
                                full, receivers);
      pipe_lc.producer_commit_bytes();
    }
  }
}
// [load_tiles]

// [sums]
/// The block with the same row, and the other part of K. Peers have sums of the same tile.
__device__ __forceinline__ uint32_t peer() { return ptx::cluster_block_rank() ^ kBlocksM; }

/// Sends a thread's sums to the peer, to the thread that has the same rows and columns.
template <class Smem>
__device__ __forceinline__ void send_sums(Smem& smem, const float* sums, uint32_t parity) {
  ptx::mbarrier_wait_cluster(&smem.peer_inbox_free, parity ^ 1);
#pragma unroll
  for (int i = 0; i < kSumsPerThread; i += 4)
    ptx::store_async(&smem.inbox[i / 4][threadIdx.x], peer(),
                     make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]), &smem.inbox_full);
}

/// Adds up the sums that the peer has sent.
template <class Smem>
__device__ __forceinline__ void add_sums(Smem& smem, float* sums, uint32_t parity) {
  if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_bytes(&smem.inbox_full, sizeof(smem.inbox));
  ptx::mbarrier_wait_cluster(&smem.inbox_full, parity);
#pragma unroll
  for (int i = 0; i < kSumsPerThread; i += 4) {
    const float4 sum = smem.inbox[i / 4][threadIdx.x];
    sums[i] += sum.x, sums[i + 1] += sum.y, sums[i + 2] += sum.z, sums[i + 3] += sum.w;
  }
  __syncwarp();  // all lanes have read
  if (threadIdx.x % kWarp == 0) ptx::mbarrier_arrive_remote_release(&smem.peer_inbox_free, peer());
}
// [sums]

/// Each warpgroup multiplies its rows; together they hand the tile to the storer.
template <class Smem>
__device__ __forceinline__ void compute_tiles(Smem& smem, Walk walk, int k_steps) {
  const int row_offset = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  Producer pipe_cs(smem.pipe_cs);
  uint32_t parity = 0;
  for (auto tile = walk.begin(); tile != walk.end(); ++tile, parity ^= 1) {
    Core core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], row_offset, smem.b[slot], step == 0);
      core.finish();
      release_in_both(pipe_lc);  // to the loader of each block of the pair
    }
    // [k_loop]
    // [hand_over]
    send_sums(smem, core.d + kSumsPerThread, parity);  // the peer's columns are the second half
    add_sums(smem, core.d, parity);
    // [hand_over]
#pragma unroll  // a register's number must be known when compiling
    for (int column = 0; column < kOwnN; column += kPieceN) {
      const int piece = pipe_cs.producer_acquire();  // waits until the storer has read what was staged before
      stage_fragment(core.d, column, smem.c[piece], row_offset);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      __syncwarp();              // all lanes have, so one arrives for them
      pipe_cs.producer_commit(threadIdx.x % kWarp == 0);
    }
  }
}

/// The storer: one thread sends what is staged to global memory.
template <class Smem>
__device__ __forceinline__ void store_tiles(Smem& smem, const TensorMaps& maps, Walk walk) {
  Consumer pipe_cs(smem.pipe_cs);
  bool sent = false;  // whether there is a piece before
  for (const TileIndex tile : walk) {
    const int first_row = (tile.row * kBlocksM + block_m()) * kTile.m;
    const int first_column = tile.column * kTile.n + block_k() * kOwnN;
    for (int column = 0; column < kOwnN; column += kPieceN) {
      const int piece = pipe_cs.consumer_wait();
      ptx::tma_store(&maps.c, &smem.c[piece], first_column + column, first_row);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<1>();  // TMA has read the piece before, which is released
      if (sent) pipe_cs.consumer_release();
      sent = true;
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent clusters: each walks over its share of the pairs of tiles of C.
template <int kSlots>
__global__ void __launch_bounds__(kThreads, 1) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  // As many rows of tiles in a group as before, counted in pairs.
  const Walk walk{tiles_over(p.m, kTile.m * kBlocksM), tiles_over(p.n, kTile.n), kTileGroup / kBlocksM};
  const int k_steps = tiles_over(tiles_over(p.k, kTile.k) - block_k(), kBlocksK);  // k > 64: each has one

  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups * kBlocksM);  // how many arrivals fill a slot, and how many empty it
    smem.pipe_cs.init(kLoaderWarp, 1);        // each compute warp, 0 to kLoaderWarp - 1, arrives for its part
    ptx::mbarrier_init(&smem.inbox_full, 1);  // one thread expects the bytes
    ptx::mbarrier_init(&smem.peer_inbox_free, kLoaderWarp);  // the peer's warps, when they have read theirs
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();  // no block sends before the barriers of all are initialised

  // [roles]
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_tiles(smem, walk, k_steps);
  } else {
    ptx::setmaxnreg_dec<kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
      if (warp == kStorerWarp) store_tiles(smem, maps, walk);
    }
  }
  // [roles]
  __syncwarp();         // the elected threads have finished
  ptx::cluster_sync();  // no block exits while another may still reach its shared memory
}

/// One cluster for each pair of tiles of C, but no more than the GPU holds at one time.
template <int kSlots>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const TensorMaps maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, kPanelColumns),
                           make_tensor_map(p.b, p.k, p.n, kBRows, kPanelColumns),
                           make_tensor_map(p.c, p.m, p.n, kTile.m, kPanelColumns)};
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
