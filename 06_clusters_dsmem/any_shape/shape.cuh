/// @file
/// What a kernel for any shape is told at compile time and at run time, what a block keeps in shared memory,
/// and which of its cluster's work it does.
#pragma once
#include <algorithm>
#include <cstdint>

#include "06_clusters_dsmem/any_shape/partial_sums.cuh"
#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "06_clusters_dsmem/any_shape/stream_k.cuh"
#include "common/cuda/residency.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/fused_epilogue.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06::any_shape {
using namespace ladder;

constexpr int kMoverRegisters = 40;  ///< see lesson 05

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
  static constexpr int kThreads = kComputeThreads + kWarpgroup;
  /// All threads together have at most the 64 K registers of an SM; those that move tiles give theirs up.
  static constexpr int kComputeRegisters = kWarpgroups == 1 ? 256 : kWarpgroups == 2 ? 232 : 152;

  static constexpr int kLoadedRows = kTileM / kClusterN;  ///< rows of a tile of A that a block loads
  static constexpr int kOwnN = kTileN / kClusterK;        ///< columns of C that a block completes and stores
  static_assert(kOwnN % 64 == 0, "TMA moves panels of 64 columns");
  using TileA = SwizzledTile<kTile.m, kTile.k>;
  using TileB = SwizzledTile<kTile.k, kTile.n>;
  static constexpr int kStagedN = kOwnN % 128 > 0 ? 64 : 128;  ///< columns that are handed over at a time
  using StagedC = SwizzledTile<kTile.m, kStagedN>;
  using Walk = StepWalk<Shape>;
  using SumInbox = Inbox<kClusterK, kOwnN / 2>;  // 64 rows, over the 128 threads of a warpgroup

  /// As many slots as fit beside the staging tiles, the inboxes and the barriers, up to 8.
  static constexpr int kBlockBytes = 227 * 1024, kBarrierBytes = 1024;
  static constexpr int kOtherBytes = kBarrierBytes + int(sizeof(StagedC) + kWarpgroups * sizeof(SumInbox));
  static constexpr int kSlotsThatFit = (kBlockBytes - kOtherBytes) / int(sizeof(TileA) + sizeof(TileB));
  static constexpr int kSlots = kSlotsThatFit < 8 ? kSlotsThatFit : 8;
  static_assert(kSlots > 1, "a product stays in flight while the next is started");
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

/// What the host decides at run time.
struct Order {
  int group;      ///< tile rows that blocks visit together; see grouped_tile
  bool pdl;       ///< programmatic dependent launch; see LaunchConfig
  int spare_sms;  ///< multiprocessors that are left to other kernels
};

/// What is done with a tile's sums.
template <class Epilogue>
struct Ending {
  Epilogue epilogue = {};    ///< applied to each sum before it is rounded; see epilogue_functors.cuh
  Workspace workspace = {};  ///< for stream-K; without one, clusters work on whole tiles
};

/// Rows of the box that loads the last rows of A: what is left, rounded up to 8; see TileSteps for the least.
template <class Shape>
int rows_at_end(int rows) {
  return std::max(8 * tiles_over(rows % Shape::kLoadedRows, 8), 8);
}

/// What clusters walk over: as many clusters as find room beside the spared SMs, or as there is work for.
template <class Shape, class... Params>
typename Shape::Walk step_walk(void (*kernel)(Params...), const Gemm& p, const Order& order,
                               const Workspace& workspace) {
  const int resident = clusters_beside(
      order.spare_sms, Shape::kBlocks,
      resident_clusters(kernel, Shape::kThreads, sizeof(SharedStorage<Shape>), Shape::kBlocks));
  const TileWalk tiles = {tiles_over(p.m, Shape::kTile.m * Shape::kClusterM),
                          tiles_over(p.n, Shape::kTile.n * Shape::kClusterN), order.group};
  const int k_steps = tiles_over(p.k, Shape::kTile.k);
  const Sharing shared =
      Shape::kStreamK && workspace.sums ? share_last_wave(tiles.tiles(), resident, k_steps) : Sharing();
  const int at_work = tiles.tiles() > resident ? resident : std::max(tiles.tiles(), shared.clusters());
  return {tiles, p.m, p.n, rows_at_end<Shape>(p.m), k_steps, shared, at_work};
}

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

/// The tensor maps of A, B and C, and one more for the rows of A behind its last whole box.
struct MapsWithEnd : TensorMaps {
  CUtensorMap a_end;
};
/// A box is what a block loads or stores at a time.
template <class Shape>
MapsWithEnd maps_of(const Gemm& p) {
  return {{make_tensor_map(p.a, p.m, p.k, Shape::kLoadedRows, 64),
           make_tensor_map(p.b, p.k, p.n, Shape::kTile.k / Shape::kClusterM, 64),
           make_tensor_map(p.c, p.m, p.n, Shape::kTile.m, 64)},
          make_tensor_map(p.a, p.m, p.k, rows_at_end<Shape>(p.m), 64)};
}

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
__device__ __forceinline__ void load_step(SharedStorage<Shape>& smem, int slot, const MapsWithEnd& maps,
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
  if (complete)
    stage_fragment(d, first, smem.c, 64 * warpgroup_index(), ending.epilogue,
                   tile.column * Shape::kTile.n + block.first_column);
}

/// Whether what is staged is to be stored.
template <class Shape>
__device__ __forceinline__ bool is_complete(const SharedStorage<Shape>& smem) {
  return !Shape::kStreamK || smem.complete;
}

}  // namespace lesson06::any_shape
