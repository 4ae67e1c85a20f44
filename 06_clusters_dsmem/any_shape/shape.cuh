/// @file
/// The choices of lesson 06 at compile time and at run time, what a block keeps in shared memory, and which
/// part of its cluster's work it does.
#pragma once
#include <algorithm>
#include <cstdint>

#include "06_clusters_dsmem/any_shape/partial_sums.cuh"
#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "06_clusters_dsmem/any_shape/stream_k.cuh"
#include "common/cuda/residency.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/staged_epilogue.cuh"
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

/// The tile of C; the blocks below each other, which share tiles of B; the blocks beside each other, which
/// share tiles of A; the blocks that split K; and whether clusters share K steps. Stream-K is a kernel of its
/// own, since small launches are faster without its instructions.
template <int kTileM, int kTileN, int kBlocksM, int kBlocksN, int kBlocksK, bool kSharesSteps = false>
struct Shape {
  static constexpr int kClusterM = kBlocksM, kClusterN = kBlocksN, kClusterK = kBlocksK,
                       kBlocks = kClusterM * kClusterN * kClusterK;
  static constexpr bool kStreamK = kSharesSteps;
  /// Ranks run down the rows of C first, then along its columns, then over the blocks that split K.
  __device__ __forceinline__ static Place place(int rank) {
    return {rank % kClusterM, rank / kClusterM % kClusterN, rank / (kClusterM * kClusterN)};
  }
  /// The blocks that fill a block's slots, and whose slots it fills: those that share A or B, and itself.
  static constexpr int kSharers = kClusterM + kClusterN - 1;
  static constexpr TileShape kTile{kTileM, kTileN, 64};
  static constexpr int kWarpgroups = kTileM / 64;  ///< that compute; each multiplies 64 rows of A
  static constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
  static constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
  static constexpr int kThreads = kComputeThreads + kWarpgroup;
  /// All threads together have at most the 64 K registers of an SM; those that move tiles give theirs up.
  static constexpr int kComputeRegisters = kWarpgroups == 1 ? 256 : kWarpgroups == 2 ? 232 : 152;

  static constexpr int kLoadedRows = kTileM / kClusterN;  ///< of a tile of A, by each of those that share it
  static constexpr int kShare = kTileN / kClusterK;       ///< columns of C that this block sums up and stores
  static_assert(kShare % 64 == 0, "TMA moves panels of 64 columns");
  using TileA = SwizzledTile<kTile.m, kTile.k>;
  using TileB = SwizzledTile<kTile.k, kTile.n>;
  static constexpr int kStagedN = kShare % 128 > 0 ? 64 : 128;  ///< columns that are handed over at a time
  using StagedC = SwizzledTile<kTile.m, kStagedN>;
  using Walk = StepWalk<Shape>;
  using SumInbox = Inbox<kClusterK, kShare / 2>;  // 64 rows of a share, over the 128 threads of a warpgroup

  /// As many slots as fit beside the staging tiles, the inboxes and the barriers, up to 8.
  static constexpr int kBlockBytes = 227 * 1024, kBarrierBytes = 1024;
  static constexpr int kOtherBytes = kBarrierBytes + int(sizeof(StagedC) + kWarpgroups * sizeof(SumInbox));
  static constexpr int kSlotsThatFit = (kBlockBytes - kOtherBytes) / int(sizeof(TileA) + sizeof(TileB));
  static constexpr int kSlots = kSlotsThatFit < 8 ? kSlotsThatFit : 8;
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
  bool all_there;  ///< used by add_parts()
  bool complete;   ///< whether c holds a finished part of C, which is to be stored
};

/// What the host decides at run time.
struct Order {
  int group;          ///< tile rows that blocks visit together; see grouped_tile
  bool begins_early;  ///< while the launch before it still runs; see LaunchConfig
  int spare_sms;      ///< multiprocessors that are left to other kernels
};

/// What is done with a tile's sums.
template <class Epilogue>
struct Ending {
  Epilogue epilogue = {};    ///< applied to each sum before it is rounded; see epilogue_functors.cuh
  Workspace workspace = {};  ///< for stream-K; without one, clusters work on whole tiles
};

/// How many rows the last box of A has, which is not whole: boxes have whole chunks of 8.
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
  const int shared = Shape::kStreamK && workspace.sums ? tiles_to_share(tiles.tiles(), resident, k_steps) : 0;
  const int shares = shared > 0 ? shared * k_steps / kFewestSteps : tiles.tiles();
  return {tiles, p.m, p.n, rows_at_end<Shape>(p.m), k_steps, shared, std::min(resident, shares)};
}

/// All blocks of a cluster meet; a block that is alone waits for its own threads, which is faster.
template <class Shape>
__device__ __forceinline__ void meet() {
  if constexpr (Shape::kBlocks > 1)
    ptx::cluster_sync();
  else
    __syncthreads();
}

/// What a block does of its cluster's work.
template <class Shape>
struct Part : Shape, Place {
  int a_row, b_row;                ///< the first row of a tile of A, and of B, that it loads
  int first_column, after_column;  ///< the columns of the tile of C that it sums up and stores

  __device__ __forceinline__ explicit Part(const SharedStorage<Shape>&)
      : Place(Shape::place(static_cast<int>(ptx::cluster_block_rank()))) {
    a_row = Shape::kLoadedRows * n, b_row = Shape::kTile.k / Shape::kClusterM * m;
    first_column = Shape::kShare * k, after_column = first_column + Shape::kShare;
  }
  /// The rank of a block of the cluster.
  __device__ __forceinline__ static uint32_t rank(int m, int n, int k) {
    return m + Shape::kClusterM * (n + Shape::kClusterN * k);
  }
  /// The rank of the block that splits K with this one.
  __device__ __forceinline__ uint32_t splitter(int of) const { return rank(m, n, of); }
  /// The rank of the i-th block that fills slots together with this one, itself among them.
  __device__ __forceinline__ uint32_t sharer(int i) const {
    const int beside = i - Shape::kClusterM;  // not counting this one
    return beside < 0 ? rank(i, n, k) : rank(m, beside + (beside >= n), k);
  }
  /// The blocks that need the same tiles of A, a bit for each rank.
  __device__ __forceinline__ uint16_t sharers_of_a() const {
    uint32_t blocks = 0;
    for (int i = 0; i < Shape::kClusterN; ++i) blocks |= 1u << rank(m, i, k);
    return static_cast<uint16_t>(blocks);
  }
  /// The blocks that need the same tiles of B.
  __device__ __forceinline__ uint16_t sharers_of_b() const {
    return static_cast<uint16_t>(((1u << Shape::kClusterM) - 1) << rank(0, n, k));
  }
};

/// Those of a product's matrices, and one for what remains of A behind its last whole box.
struct MapsWithEnd : TensorMaps {
  CUtensorMap a_end;
};
/// The boxes are what a block loads or stores at a time.
template <class Shape>
MapsWithEnd maps_of(const Gemm& p) {
  return {{make_tensor_map(p.a, p.m, p.k, Shape::kLoadedRows, 64),
           make_tensor_map(p.b, p.k, p.n, Shape::kTile.k / Shape::kClusterM, 64),
           make_tensor_map(p.c, p.m, p.n, Shape::kTile.m, 64)},
          make_tensor_map(p.a, p.m, p.k, rows_at_end<Shape>(p.m), 64)};
}

// [multicast]
/// Loads this block's rows of a tile of A, whose first element is (column, row), for all blocks beside it:
/// each receives them at the same place, and counts them at its barrier.
template <class Shape>
__device__ __forceinline__ void multicast_a(const Part<Shape>& part, auto& tile, const CUtensorMap* map,
                                            int column, int row, ptx::Mbarrier* full) {
  auto* const to = &tile.panels[0][part.a_row];
  if constexpr (Shape::kClusterN == 1)
    ptx::tma_load(to, map, column, row, full);
  else
    ptx::tma_load_multicast(to, map, column, row + part.a_row, full, part.sharers_of_a());
}
/// The same of a panel of a tile of B, for all blocks below or above this one.
template <class Shape>
__device__ __forceinline__ void multicast_b(const Part<Shape>& part, auto& panel, const CUtensorMap* map,
                                            int column, int row, ptx::Mbarrier* full) {
  auto* const to = &panel[part.b_row];
  if constexpr (Shape::kClusterM == 1)
    ptx::tma_load(to, map, column, row, full);
  else
    ptx::tma_load_multicast(to, map, column, row + part.b_row, full, part.sharers_of_b());
}
// [multicast]
/// Loads this block's parts of a K step's tiles of A and B into a slot.
template <class Shape>
__device__ __forceinline__ void load_parts(SharedStorage<Shape>& smem, int slot, const MapsWithEnd& maps,
                                           const TileSteps& tile, int step, ptx::Mbarrier* full) {
  const Part part(smem);
  constexpr TileShape kTile = Shape::kTile;
  multicast_a(part, smem.a[slot], tile.a_is_whole ? &maps.a : &maps.a_end, step * kTile.k, tile.row * kTile.m,
              full);
  for (int column = 0; column < kTile.n; column += 64)
    if (column < tile.b_columns)
      multicast_b(part, smem.b[slot].panels[column / 64], &maps.b, tile.column * kTile.n + column,
                  step * kTile.k, full);
}

/// A warpgroup that has read a slot says so in all blocks that fill it: one thread for each.
template <class Shape>
__device__ __forceinline__ void release(auto& pipe_lc, const Part<Shape>& part) {
  // [release]
  const int thread = threadIdx.x % kWarpgroup;
  if constexpr (Shape::kSharers == 1) return pipe_lc.consumer_release(thread == 0);
  if (thread < Shape::kSharers) ptx::mbarrier_arrive_remote(pipe_lc.barrier(), part.sharer(thread));
  pipe_lc.consumer_release(false);
  // [release]
}

/// Adds up what blocks have of a tile: those of a cluster that split K through each other's shared memory,
/// clusters that share its steps through global memory.
/// @returns whether this block has the whole sums of its columns
template <class Shape, int kCount>
__device__ __forceinline__ bool add_up(auto& sums, const Part<Shape>& part, float (&d)[kCount],
                                       const auto& walk, const TileSteps& tile, const auto& ending,
                                       auto& smem) {
  sums.add(d);
  if constexpr (!Shape::kStreamK) return true;
  return add_parts(part, d, walk, tile, ending.workspace, smem.all_there);
}

/// Writes a piece of the columns that this block stores, from kFirst on, to the warpgroup's rows of the
/// staging tile. Where another block completes the tile, the storer learns that there is nothing to store.
template <int kFirst, class Shape, class Epilogue, int kCount>
__device__ __forceinline__ void stage(const float (&d)[kCount], auto& smem, const Part<Shape>& part,
                                      const TileSteps& tile, const Ending<Epilogue>& ending, bool complete) {
  if (Shape::kStreamK && threadIdx.x == 0) smem.complete = complete;
  if (complete)
    stage_fragment<kFirst>(d, smem.c, 64 * warpgroup_index(), ending.epilogue,
                           tile.column * Shape::kTile.n + part.first_column);
}

/// Whether what is staged is to be stored.
template <class Shape>
__device__ __forceinline__ bool is_complete(const SharedStorage<Shape>& smem) {
  return !Shape::kStreamK || smem.complete;
}

}  // namespace lesson06::any_shape
