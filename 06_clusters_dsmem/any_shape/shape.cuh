/// @file
/// What a kernel for any shape is told at compile time and at run time, what a block keeps in shared memory,
/// and which of its cluster's work it does.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "06_clusters_dsmem/any_shape/partial_sums.cuh"
#include "06_clusters_dsmem/any_shape/sharing.hpp"
#include "06_clusters_dsmem/any_shape/stream_k.cuh"
#include "06_clusters_dsmem/any_shape/wide_core.cuh"
#include "common/device/fused_epilogue.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tma_3d.cuh"

namespace lesson06::any_shape {
using namespace ladder;

/// The tile of C; the blocks below each other, which receive the same tiles of B; the blocks beside each
/// other, which receive the same tiles of A; the blocks that split K; and whether clusters split tiles along
/// K (stream-K). Stream-K is a kernel of its own, since small launches are faster without its instructions.
template <int kTileM, int kTileN, int kBlocksM, int kBlocksN, int kBlocksK, bool kSplitsTiles = false>
struct Shape {
  static constexpr int kClusterM = kBlocksM, kClusterN = kBlocksN, kClusterK = kBlocksK,
                       kBlocks = kClusterM * kClusterN * kClusterK;
  static constexpr bool kStreamK = kSplitsTiles;
  /// Ranks run down the rows of C first, then along its columns, then over the blocks that split K.
  __device__ __forceinline__ static Place place(int rank) {
    return {rank % kClusterM, rank / kClusterM % kClusterN, rank / (kClusterM * kClusterN)};
  }
  /// The blocks that load a part of a block's slots, itself among them. It loads a part of their slots, too.
  static constexpr int kFillers = kClusterM + kClusterN - 1;
  static constexpr TileShape kTile{kTileM, kTileN, 64};
  static constexpr int kWarpgroups = kTileM / 64;  ///< compute warpgroups; each multiplies 64 rows of A
  static constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
  static constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
  /// All threads together have at most the 64 K registers of an SM. A warpgroup that moves tiles gives up its
  /// own, see lesson 05. But a product takes no more registers than a thread had at the launch: three
  /// warpgroups with wide tiles leave only two warps room to move tiles.
  static constexpr bool kMovesRegisters = kWarpgroups < 4;
  static_assert(kWarpgroups < 3 || kTileN <= (kWarpgroups == 3 ? 192 : 128));
  static constexpr int kThreads = kComputeThreads + (kMovesRegisters ? kWarpgroup : 2 * kWarp);
  static constexpr int kMoverRegisters = 40;
  static constexpr int kComputeRegisters = kWarpgroups == 1 ? 256 : kWarpgroups == 2 ? 232 : 152;

  static constexpr int kLoadedRows = kTileM / kClusterN;  ///< rows of a tile of A that a block loads
  static constexpr int kOwnN = kTileN / kClusterK;        ///< columns of C that a block completes and stores
  static_assert(kTileM % 64 == 0 && kLoadedRows % 8 == 0 && kTile.k % (8 * kClusterM) == 0);
  static_assert(kTileN % (8 * kClusterK) == 0, "wgmma and TMA count columns in eights");
  using TileA = SwizzledTile<kTile.m, kTile.k>;
  /// TMA moves panels of 64 columns. Of the last one a product may need only a part.
  using TileB = SwizzledTile<kTile.k, 64 * tiles_over(kTileN, 64)>;
  using Walk = StepWalk<Shape>;
  using SumInbox = Inbox<kClusterK, kOwnN / 2>;  // 64 rows, over the 128 threads of a warpgroup

  /// As many slots as fit beside a staging tile of so many columns, the inboxes and the barriers, up to 8.
  static constexpr int kBlockBytes = 227 * 1024, kBarrierBytes = 1024;
  static constexpr int slots_beside(int staged_n) {
    const int bytes =
        kBlockBytes - kBarrierBytes - kTileM * staged_n * 2 - kWarpgroups * int(sizeof(SumInbox));
    const int slots = bytes / int(sizeof(TileA) + sizeof(TileB));
    return slots < 8 ? slots : 8;
  }
  /// Columns that are handed over at a time: 128, unless that leaves the ring fewer than four slots.
  static constexpr int kStagedN = kOwnN > 64 &&
                                          (slots_beside(128) >= 4 || slots_beside(128) == slots_beside(64))
                                      ? 128
                                      : 64;
  using StagedC = SwizzledTile<kTile.m, kStagedN>;
  static constexpr int kSlots = slots_beside(kStagedN);
  static_assert(kSlots > 1, "a product stays in flight while the next is started");
  /// Whether the last panel of a block's columns is narrower than TMA's box: see Block::store.
  static constexpr bool kRagged = kOwnN % 64 > 0;
};

/// The ring, a staging tile for a piece of C, and an inbox of partial sums for each compute warpgroup.
template <class Shape>
struct SharedStorage {
  typename Shape::TileA a[Shape::kSlots];
  typename Shape::TileB b[Shape::kSlots];
  typename Shape::StagedC c;
  typename Shape::SumInbox inbox[Shape::kWarpgroups];
  Pipeline<Shape::kSlots> pipe_lc;
  Pipeline<1> pipe_cs;
  bool complete;  ///< whether c holds finished columns of C, which are to be stored
};

/// What is done with a tile's sums.
template <class Epilogue>
struct Ending {
  Epilogue epilogue = {};    ///< applied to each sum before it is rounded; see epilogue_functors.cuh
  Workspace workspace = {};  ///< for stream-K; without one, clusters work on whole tiles
};

/// Synchronizes the cluster; of one block only its threads, which is faster.
template <class Shape>
__device__ __forceinline__ void sync_cluster() {
  if constexpr (Shape::kBlocks > 1)
    ptx::cluster_sync();
  else
    __syncthreads();
}

/// A block of a cluster: what it loads, and which columns it stores.
template <class Shape>
struct Block : Shape, Place {
  int a_row, b_row;                ///< the first row of a tile of A, and of B, that it loads
  int first_column, after_column;  ///< the columns of the tile of C that it completes and stores

  __device__ __forceinline__ Block() : Place(Shape::place(static_cast<int>(ptx::cluster_block_rank()))) {
    a_row = Shape::kLoadedRows * n, b_row = Shape::kTile.k / Shape::kClusterM * m;
    first_column = Shape::kOwnN * k, after_column = first_column + Shape::kOwnN;
  }
  /// The rank of a block of the cluster.
  __device__ __forceinline__ static uint32_t rank(int m, int n, int k) {
    return m + Shape::kClusterM * (n + Shape::kClusterN * k);
  }
  /// The rank of the block that works on the k-th piece of K of the same tile.
  __device__ __forceinline__ uint32_t peer(int other_k) const { return rank(m, n, other_k); }
  /// The rank of the i-th block that loads a part of this block's slots, itself among them.
  __device__ __forceinline__ uint32_t filler(int i) const {
    const int beside = i - Shape::kClusterM;  // not counting this one
    return beside < 0 ? rank(i, n, k) : rank(m, beside + (beside >= n), k);
  }
  /// The blocks that receive the same tiles of A, a bit for each rank.
  __device__ __forceinline__ uint16_t receivers_of_a() const {
    uint32_t blocks = 0;
    for (int i = 0; i < Shape::kClusterN; ++i) blocks |= 1u << rank(m, i, k);
    return static_cast<uint16_t>(blocks);
  }
  /// The blocks that receive the same tiles of B.
  __device__ __forceinline__ uint16_t receivers_of_b() const {
    return static_cast<uint16_t>(((1u << Shape::kClusterM) - 1) << rank(0, n, k));
  }
};

/// The tensor maps that a kernel takes as one parameter, as TMA reads them at their address. `a_end` is for
/// the rows of A behind its last whole box. `c_tiles` has C's columns in groups of Shape::kOwnN, as three
/// dimensions: column in the group, row, group.
struct Maps {
  CUtensorMap a, b, c, a_end, c_tiles;
};

// [multicast]
/// Loads this block's rows of a tile of A, whose first element is (column, row), for all blocks beside it.
/// Each of them receives the rows at the same place, and its barrier counts their bytes.
template <class Shape>
__device__ __forceinline__ void multicast_a(const Block<Shape>& block, auto& tile, const CUtensorMap* map,
                                            int column, int row, ptx::Mbarrier* full) {
  auto* const to = &tile.panels[0][block.a_row];
  if constexpr (Shape::kClusterN == 1)
    ptx::tma_load(to, map, column, row, full);
  else
    ptx::tma_load_multicast(to, map, column, row + block.a_row, full, block.receivers_of_a());
}
/// Likewise this block's rows of a panel of a tile of B, for all blocks above and below it.
template <class Shape>
__device__ __forceinline__ void multicast_b(const Block<Shape>& block, auto& panel, const CUtensorMap* map,
                                            int column, int row, ptx::Mbarrier* full) {
  auto* const to = &panel[block.b_row];
  if constexpr (Shape::kClusterM == 1)
    ptx::tma_load(to, map, column, row, full);
  else
    ptx::tma_load_multicast(to, map, column, row + block.b_row, full, block.receivers_of_b());
}
// [multicast]
/// Loads what this block loads of a K step's tiles of A and B into a slot.
template <class Shape>
__device__ __forceinline__ void load_step(SharedStorage<Shape>& smem, int slot, const Maps& maps,
                                          const TileSteps& tile, int step, ptx::Mbarrier* full) {
  const Block<Shape> block;
  constexpr TileShape kTile = Shape::kTile;
  multicast_a(block, smem.a[slot], tile.a_is_whole ? &maps.a : &maps.a_end, step * kTile.k,
              tile.row * kTile.m, full);
  for (int column = 0; column < kTile.n; column += 64)
    if (column < tile.b_columns)
      multicast_b(block, smem.b[slot].panels[column / 64], &maps.b, tile.column * kTile.n + column,
                  step * kTile.k, full);
}

/// A warpgroup has read a slot: one thread for each block that fills the slot tells that block's loader.
template <class Shape>
__device__ __forceinline__ void release(Consumer<Shape::kSlots>& pipe_lc, const Block<Shape>& block) {
  // [release]
  const int thread = threadIdx.x % kWarpgroup;
  if constexpr (Shape::kFillers == 1) return pipe_lc.consumer_release(thread == 0);
  if (thread < Shape::kFillers) ptx::mbarrier_arrive_remote(pipe_lc.empty_barrier(), block.filler(thread));
  pipe_lc.consumer_release(false);
  // [release]
}

/// Adds up the partial sums of a tile: blocks of a cluster that split K send them to each other's shared
/// memory, clusters that split the tile go through global memory.
/// @returns whether this block now has the whole sums of its columns
template <class Shape, int kCount>
__device__ __forceinline__ bool add_up(auto& sums, const Block<Shape>& block, float (&d)[kCount],
                                       const auto& walk, const TileSteps& tile, const auto& ending) {
  sums.add(d);
  if constexpr (!Shape::kStreamK) return true;
  return fix_up(block, d, walk, tile, ending.workspace);
}

/// Writes a piece of the columns that this block stores, from `first` on, to the warpgroup's rows of the
/// staging tile. Where another block completes the tile, the storer learns that there is nothing to store.
template <class Shape, class Epilogue, int kCount>
__device__ __forceinline__ void stage(const float (&d)[kCount], int first, auto& smem,
                                      const Block<Shape>& block, const TileSteps& tile,
                                      const Ending<Epilogue>& ending, bool complete) {
  if (Shape::kStreamK && threadIdx.x == 0) smem.complete = complete;
  if (!complete) return;
  const int lane = lane_index(), first_column = tile.column * Shape::kTile.n + block.first_column + first;
  const int my_row = 64 * warpgroup_index() + 16 * warp_in_warpgroup() + lane % 16, my_column = lane / 16 * 8;
#pragma unroll  // stmatrix takes 16 columns at a time; the last eight may be alone
  for (int column = 0; column < Shape::kStagedN; column += 16) {
    uint32_t packed[4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (first + column + 8 * half >= Shape::kOwnN) continue;
      const float2 bias = ending.epilogue.bias_pair(first_column + column + 8 * half + lane % 4 * 2);
      const float* const sums = &d[(first + column + 8 * half) / 2];
      packed[2 * half] = pack_bf16(ending.epilogue(sums[0], bias.x), ending.epilogue(sums[1], bias.y));
      packed[2 * half + 1] = pack_bf16(ending.epilogue(sums[2], bias.x), ending.epilogue(sums[3], bias.y));
    }
    if (first + column < Shape::kOwnN) ptx::stmatrix_x4(smem.c.chunk(my_row, column + my_column), packed);
  }
}

/// Sends a staged panel, whose first column is the `column`-th that this block stores, to C. TMA leaves out
/// what lies to the right of C, but knows nothing of the tile's right edge, which the last panel may cross.
/// There the map of groups cuts: all its groups lie in C, so the last one, where C ends, takes the other map.
template <class Shape>
__device__ __forceinline__ void store_panel(const Block<Shape>& block, const auto& panel, const Maps& maps,
                                            const TileSteps& tile, int column, int columns_of_c) {
  const int first = tile.column * Shape::kTile.n + block.first_column, row = tile.row * Shape::kTile.m;
  if (Shape::kRagged && first + Shape::kOwnN <= columns_of_c)
    ptx::tma_store_3d(&maps.c_tiles, &panel, column, row, first / Shape::kOwnN);
  else
    ptx::tma_store(&maps.c, &panel, first + column, row);
}

/// Whether what is staged is to be stored.
template <class Shape>
__device__ __forceinline__ bool is_complete(const SharedStorage<Shape>& smem) {
  return !Shape::kStreamK || smem.complete;
}

}  // namespace lesson06::any_shape
