/// @file
/// Stream-K (Osama et al., 2023): tiles that would not fill a wave of their own are split along K, so that
/// all clusters have the same number of K steps. Where a cluster's range of steps ends within a tile, the
/// next cluster goes on. Their partial sums are added up in global memory: the fix-up.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/atomic>

#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson06::any_shape {

/// Some K steps of a tile of C, and what a block's loads bring for each.
///
/// TMA would fill with zeros what lies outside A and B, but takes longer for a row of zeros than for a row of
/// A. So these rows are not loaded: what shared memory holds there only reaches sums that are not stored. But
/// every block loads at least one chunk of 8 rows: a block that did not wait for another's bytes could
/// release a slot twice before a third block has released it once, and the two arrivals would count for both.
struct TileSteps : ladder::TileIndex {
  int first_step, after_step;  ///< those of this block
  int index;                   ///< of the tile in the walk
  bool a_is_whole;             ///< all rows of A that this block loads exist; else it loads A's last box
  int b_columns;               ///< columns of the tile of B that are loaded, a multiple of 64
  uint32_t bytes;              ///< that arrive in a slot
};

/// Where a block stands in its cluster.
struct Place {
  int m, n, k;  ///< which of the kClusterM, kClusterN and kClusterK blocks it is
};

/// The clusters that compute steps of one tile.
struct Contributors {
  int count, me;  ///< how many, and which of them this is
  int place;      ///< of the first cluster's partial sums in the workspace; the others' follow
};

/// What the clusters of a Shape walk over. With stream-K the K steps of the first `split_tiles` tiles form
/// one row, of which each cluster has a range of equal length. All other tiles are walked over as a TileWalk
/// does. A tile of the walk is that of a whole cluster.
///
/// The extents of tile and cluster are constants of the kernel, so that divisions by them are shifts and
/// multiplications, which do not delay the first load.
template <class Shape>
struct StepWalk : ladder::TileWalk {
  int rows, columns;  ///< of C
  int rows_at_end;    ///< of A's last box
  int k_steps;        ///< of a tile
  int split_tiles;    ///< 0 without stream-K
  int clusters;       ///< of the grid

  struct Iterator {
    const StepWalk& walk;
    int index, begin, end;  ///< the tile, and the cluster's range of steps, counted over all split tiles
    TileSteps tile = walk.steps(index, begin, end);  ///< computed ahead, while products run

    __device__ __forceinline__ const TileSteps& operator*() const { return tile; }
    __device__ __forceinline__ void operator++() {
      if (!Shape::kStreamK || index >= walk.split_tiles)
        index += walk.clusters;
      else if ((index + 1) * walk.k_steps < end)
        ++index;
      else
        index = walk.split_tiles + walk.cluster();
      tile = walk.steps(index, begin, end);
    }
    __device__ __forceinline__ bool operator!=(End) const { return index < walk.tiles(); }
  };

  /// The first tile of which this cluster has steps.
  __device__ __forceinline__ Iterator begin() const {
    if (!Shape::kStreamK || split_tiles == 0) return {*this, cluster(), 0, 0};
    const int first = range_begin(cluster()), after = range_begin(cluster() + 1);
    return {*this, first < after ? first / k_steps : split_tiles + cluster(), first, after};
  }
  /// The clusters that compute steps of a tile.
  __device__ __forceinline__ Contributors contributors(const TileSteps& tile) const {
    if (tile.index >= split_tiles) return {1, 0, 0};
    const int first = cluster_at(tile.index * k_steps + kMinSteps - 1);
    const int last = cluster_at((tile.index + 1) * k_steps - kMinSteps);
    // No two partial sums have the same place: from one to the next either the tile or the cluster changes.
    return {last - first + 1, cluster() - first, tile.index + first};
  }

 private:
  __device__ __forceinline__ static int cluster() { return static_cast<int>(blockIdx.x) / Shape::kBlocks; }

  /// What this block computes of a tile, of which its cluster has the steps between `begin` and `end`.
  __device__ __forceinline__ TileSteps steps(int index, int begin, int end) const {
    if (index >= tiles()) return {};
    const Place place = Shape::place(static_cast<int>(blockIdx.x) % Shape::kBlocks);
    ladder::TileIndex tile = ladder::grouped_tile(index, tile_rows, tile_columns, group);
    tile.row = tile.row * Shape::kClusterM + place.m;
    tile.column = tile.column * Shape::kClusterN + place.n;
    int first = 0, after = k_steps;
    if (Shape::kStreamK && index < split_tiles) {
      first = max(first, begin - index * k_steps);
      after = min(after, end - index * k_steps);
    }
    const int count = after - first;

    const int rows_left = max(rows - tile.row * Shape::kTile.m, 0),
              columns_left = max(columns - tile.column * Shape::kTile.n, 1);
    const int whole = min(rows_left / Shape::kLoadedRows, Shape::kClusterN);
    const int a_rows = Shape::kLoadedRows * whole + rows_at_end * (Shape::kClusterN - whole);
    const int b_columns = min(64 * ladder::tiles_over(columns_left, 64), Shape::kTile.n);
    return {tile,
            first + count * place.k / Shape::kClusterK,
            first + count * (place.k + 1) / Shape::kClusterK,
            index,
            place.n < whole,
            b_columns,
            static_cast<uint32_t>((a_rows + b_columns) * Shape::kTile.k * sizeof(__nv_bfloat16))};
  }

  /// The first step of a cluster's range. Fewer than kMinSteps steps at an end of a tile go to the neighbour:
  /// their sums would not be worth sending.
  __device__ __forceinline__ int range_begin(int cluster) const {
    const int begin = split_tiles * k_steps * cluster / clusters, step = begin % k_steps;
    if (step < kMinSteps) return begin - step;
    return k_steps - step < kMinSteps ? begin - step + k_steps : begin;
  }
  /// The last cluster whose range begins at or before `step`, if no ends went to neighbours.
  __device__ __forceinline__ int cluster_at(int step) const {
    return ((step + 1) * clusters - 1) / (split_tiles * k_steps);
  }
};

/// In global memory: all partial sums, and for each block's tile how many of them have arrived, which is 0
/// between two launches.
struct Workspace {
  float4* sums = nullptr;
  unsigned* arrived = nullptr;
};

/// The fix-up: adds up the partial sums of a block's tile. A block stores its partial sums and counts itself;
/// where two blocks contribute, the second need not store. The last to arrive adds up all, always in the same
/// order, so that the result does not depend on which block was last. No block waits for another. All compute
/// threads call it.
/// @param block which block of its cluster this is
/// @param d the partial sums of this block; if the tile is complete, its sums
/// @param is_last a place in shared memory
/// @returns whether the tile is complete
template <class Block, int kCount>
__device__ __forceinline__ bool fix_up(const Block& block, float (&d)[kCount], const auto& walk,
                                       const TileSteps& tile, const Workspace& workspace, bool& is_last) {
  const Contributors contributors = walk.contributors(tile);
  if (contributors.count == 1) return true;
  constexpr int kFloats = Block::kOwnN / 2, kThreads = Block::kComputeThreads,
                kPieces = kFloats / 4 * kThreads;
  static_assert(Block::kClusterK <= kMinSteps, "each block that splits K needs a step of each split tile");
  const int rank = block.rank(block.m, block.n, block.k);
  float4* const partials =
      workspace.sums + (contributors.place * Block::kBlocks + rank) * kPieces + static_cast<int>(threadIdx.x);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(
      workspace.arrived[tile.index * Block::kBlocks + rank]);

  // Each warp has 16 rows. Rows that C does not have need no sums.
  const bool has_rows = tile.row * Block::kTile.m + int(threadIdx.x) / ladder::kWarp * 16 < walk.rows;

  // A range begins within a tile and ends within another. So of two contributors the first mostly comes last,
  // and then need not store its sums.
  bool all_there = false;
  if (contributors.count == 2 && contributors.me == 0) {
    ptx::named_barrier_sync(1, kThreads);  // all threads have read is_last of the tile before
    if (threadIdx.x == 0) is_last = arrived.load(cuda::memory_order_acquire) == 1;
    ptx::named_barrier_sync(1, kThreads);
    all_there = is_last;
  }
  if (!all_there) {
    if (has_rows) {
#pragma unroll
      for (int i = 0; i < kFloats; i += 4)
        partials[contributors.me * Block::kBlocks * kPieces + i / 4 * kThreads] =
            make_float4(d[i], d[i + 1], d[i + 2], d[i + 3]);
    }
    ptx::named_barrier_sync(1, kThreads);  // all threads have stored, so one thread can release all stores
    if (threadIdx.x == 0)
      is_last = arrived.fetch_add(1, cuda::memory_order_acq_rel) + 1 == unsigned(contributors.count);
    ptx::named_barrier_sync(1, kThreads);
    if (!is_last) return false;
  }
  if (threadIdx.x == 0) arrived.store(0, cuda::memory_order_relaxed);  // for the next launch

  // Two partial sums give the same result in either order.
  if (contributors.count > 2) ladder::clear(d);
#pragma unroll 1
  for (int of = 0; of < contributors.count && has_rows; ++of) {
    if (contributors.count == 2 && of == contributors.me) continue;
#pragma unroll
    for (int i = 0; i < kFloats; i += 4) {
      const float4 sum = partials[of * Block::kBlocks * kPieces + i / 4 * kThreads];
      d[i] += sum.x, d[i + 1] += sum.y, d[i + 2] += sum.z, d[i + 3] += sum.w;
    }
  }
  return true;
}

}  // namespace lesson06::any_shape
