/// @file
/// What a kernel for any shape is told at compile time and at run time, what a block keeps in shared memory,
/// and which of its cluster's work it does.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "06_clusters_dsmem/any_shape/partial_sums.cuh"
#include "06_clusters_dsmem/any_shape/ring.hpp"
#include "06_clusters_dsmem/any_shape/sharing.hpp"
#include "06_clusters_dsmem/any_shape/stream_k.cuh"
#include "06_clusters_dsmem/any_shape/wide_core.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06::any_shape {
using namespace ladder;

/// The tile of C; the blocks below each other, which receive the same tiles of B; the blocks beside each
/// other, which receive the same tiles of A; the blocks that split K; and whether clusters split tiles along
/// K (stream-K). Stream-K is a kernel of its own, since small launches are faster without its instructions.
///
/// With kSwaps wgmma's operands are swapped, see WideCore. All that the template parameters, the tiles of A
/// and B and their loads say is of A, B and C. What works with sums (the walk, kTile, kClusterM and
/// kClusterN, ranks) sees C transposed, so that "rows" there are columns of C.
template <int kTileM, int kTileN, int kBlocksM, int kBlocksN, int kBlocksK, bool kSplitsTiles = false,
          bool kSwapsOperands = false>
struct Shape {
  static constexpr bool kStreamK = kSplitsTiles, kSwaps = kSwapsOperands;
  static constexpr int kClusterM = kSwaps ? kBlocksN : kBlocksM, kClusterN = kSwaps ? kBlocksM : kBlocksN,
                       kClusterK = kBlocksK, kBlocks = kClusterM * kClusterN * kClusterK;
  /// Ranks run down the rows of C first, then along its columns, then over the blocks that split K.
  __device__ __forceinline__ static Place place(int rank) {
    return {rank % kClusterM, rank / kClusterM % kClusterN, rank / (kClusterM * kClusterN)};
  }
  /// The blocks that load a part of a block's slots, itself among them. It loads a part of their slots, too.
  static constexpr int kFillers = kClusterM + kClusterN - 1;
  static constexpr TileShape kTile{kSwaps ? kTileN : kTileM, kSwaps ? kTileM : kTileN, 64};
  static constexpr int kWarpgroups = kTile.m / 64;  ///< compute warpgroups; each multiplies 64 rows of A
  using Core = WideCore<kTile.n, kSwaps>;           ///< with kSwaps of 64 columns of B
  static constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
  static constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
  /// All threads together have at most the 64 K registers of an SM. A warpgroup that moves tiles gives up its
  /// own, see lesson 05. But a product takes no more registers than a thread had at the launch: three
  /// warpgroups with wide tiles leave only two warps room to move tiles.
  static constexpr bool kMovesRegisters = kWarpgroups < 4;
  static_assert(kWarpgroups < 3 || kTile.n <= (kWarpgroups == 3 ? 192 : 128));
  static constexpr int kThreads = kComputeThreads + (kMovesRegisters ? kWarpgroup : 2 * kWarp);
  static constexpr int kMoverRegisters = 40;
  static constexpr int kComputeRegisters = kWarpgroups == 1 ? 256 : kWarpgroups == 2 ? 232 : 152;

  static constexpr int kReceiversOfA = kBlocksN, kReceiversOfB = kBlocksM;
  static constexpr int kLoadedRows = kTileM / kReceiversOfA;  ///< rows of a tile of A that a block loads
  static constexpr int kLoadedK = kTile.k / kReceiversOfB;    ///< rows of a tile of B
  static constexpr int kOwnN = kTile.n / kClusterK;           ///< columns that a block completes and stores
  static_assert(kTile.m % 64 == 0 && kLoadedRows % 8 == 0 && kLoadedK % 8 == 0);
  static_assert(kTile.n % (8 * kClusterK) == 0, "wgmma and TMA count columns in eights");
  using TileA = SwizzledTile<kTileM, kTile.k>;
  /// TMA moves panels of 64 columns. Of the last one a product may need only a part.
  using TileB = SwizzledTile<kTile.k, 64 * tiles_over(kTileN, 64)>;
  using Walk = StepWalk<Shape>;
  using SumInbox = Inbox<kClusterK, kOwnN / 2>;  // 64 rows, over the 128 threads of a warpgroup

  static constexpr Ring kRing = ring_of(kSwaps, kTile.m, kTile.n, kClusterK);
  static constexpr int kStagedN = kRing.staged_n, kSlots = kRing.slots;
  using StagedC = SwizzledTile<kSwaps ? kStagedN : kTile.m, kSwaps ? kTile.m : kStagedN>;
  static_assert(kSlots > 1, "a product stays in flight while the next is started");
  /// Whether the last panel of a block's columns is narrower than TMA's box: see store_panel().
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
    a_row = Shape::kLoadedRows * (Shape::kSwaps ? m : n), b_row = Shape::kLoadedK * (Shape::kSwaps ? n : m);
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
  /// The blocks beside this one and itself, a bit for each rank.
  __device__ __forceinline__ uint16_t beside() const {
    uint32_t blocks = 0;
    for (int i = 0; i < Shape::kClusterN; ++i) blocks |= 1u << rank(m, i, k);
    return static_cast<uint16_t>(blocks);
  }
  /// The blocks above and below it.
  __device__ __forceinline__ uint16_t above_and_below() const {
    return static_cast<uint16_t>(((1u << Shape::kClusterM) - 1) << rank(0, n, k));
  }
  /// The blocks that receive the same tiles of A.
  __device__ __forceinline__ uint16_t receivers_of_a() const {
    return Shape::kSwaps ? above_and_below() : beside();
  }
  /// The blocks that receive the same tiles of B.
  __device__ __forceinline__ uint16_t receivers_of_b() const {
    return Shape::kSwaps ? beside() : above_and_below();
  }
};

/// The tensor maps that a kernel takes as one parameter, as TMA reads them at their address. `a_end` is for
/// the rows of A behind its last whole box, and `c_end` for what of a tile of C is less than a box. It has
/// C's columns in groups of Shape::kOwnN, as three dimensions: column in the group, row, group. Where
/// operands are swapped, its box has as many rows as a tile's last piece.
struct Maps {
  CUtensorMap a, b, c, a_end, c_end;
};

// [multicast]
/// Loads this block's rows of a tile of A, whose first element is (column, row), for all that receive it.
/// Each of them receives the rows at the same place, and its barrier counts their bytes.
template <class Shape>
__device__ __forceinline__ void multicast_a(const Block<Shape>& block, auto& tile, const CUtensorMap* map,
                                            int column, int row, ptx::Mbarrier* full) {
  auto* const to = &tile.panels[0][block.a_row];
  if constexpr (Shape::kReceiversOfA == 1)
    ptx::tma_load(to, map, column, row, full);
  else
    ptx::tma_load_multicast(to, map, column, row + block.a_row, full, block.receivers_of_a());
}
/// Likewise this block's rows of a panel of a tile of B.
template <class Shape>
__device__ __forceinline__ void multicast_b(const Block<Shape>& block, auto& panel, const CUtensorMap* map,
                                            int column, int row, ptx::Mbarrier* full) {
  auto* const to = &panel[block.b_row];
  if constexpr (Shape::kReceiversOfB == 1)
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
  const int down = tile.row * kTile.m, across = tile.column * kTile.n;
  multicast_a(block, smem.a[slot], tile.a_is_whole ? &maps.a : &maps.a_end, step * kTile.k,
              Shape::kSwaps ? across : down, full);
  for (int column = 0; column < Shape::TileB::kColumns; column += 64)
    if (column < tile.b_columns)
      multicast_b(block, smem.b[slot].panels[column / 64], &maps.b, (Shape::kSwaps ? down : across) + column,
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

}  // namespace lesson06::any_shape
