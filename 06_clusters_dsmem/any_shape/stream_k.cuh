/// @file
/// Stream-K (Osama et al., 2023): tiles that would not fill a wave of their own are cut along K, so that all
/// clusters have the same number of K steps. Where a cluster's share ends within a tile, another goes on;
/// their sums meet in global memory.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/atomic>

#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "common/device/cores.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson06::any_shape {

/// Some K steps of a tile of C, and what a block's loads bring for each.
///
/// TMA would fill with zeros what lies outside A and B, but takes longer for a row of zeros than for a row of
/// A. What shared memory holds there instead only reaches sums that are not stored. But no load brings
/// nothing: a block that did not wait for another's bytes could release a slot twice before a third has
/// released it once, and the two arrivals would count for both.
struct TileSteps : ladder::TileIndex {
  int first_step, after_step;  ///< those of this block
  int index;                   ///< of the tile in the walk
  bool a_is_whole;             ///< this block's part of the tile of A; else it loads A's last box
  int b_columns;               ///< of the tile of B, a multiple of 64
  uint32_t bytes;              ///< that arrive in a slot
};

/// Where a block stands in its cluster.
struct Place {
  int m, n, k;  ///< which of the kClusterM, kClusterN and kClusterK blocks it is
};

/// The clusters that have steps of one tile.
struct Sharers {
  int count, me;  ///< how many, and which of them this is
  int place;      ///< of the first one's sums in the workspace; those of the others follow
};

/// What the clusters of a Shape walk over. With stream-K the first `shared_tiles` tiles are one row of K
/// steps, of which each of `clusters` has an equal share. All others are walked over as a TileWalk does. The
/// walk's tiles are those of whole clusters.
///
/// Everything but the size of the problem is a constant of the kernel: a division by what is not would delay
/// the first load.
template <class Shape>
struct StepWalk : ladder::TileWalk {
  int rows, columns;  ///< of C
  int rows_at_end;    ///< of A's last box
  int k_steps;        ///< of a tile
  int shared_tiles;   ///< 0 without stream-K
  int clusters;       ///< of the grid

  struct Iterator {
    const StepWalk& walk;
    int index, begin, end;  ///< the tile, and the cluster's share of steps, counted over all shared tiles
    TileSteps tile = walk.steps(index, begin, end);  ///< worked out before it is asked for

    __device__ __forceinline__ const TileSteps& operator*() const { return tile; }
    __device__ __forceinline__ void operator++() {
      if (!Shape::kStreamK || index >= walk.shared_tiles)
        index += walk.clusters;
      else if ((index + 1) * walk.k_steps < end)
        ++index;
      else
        index = walk.shared_tiles + walk.cluster();
      tile = walk.steps(index, begin, end);
    }
    __device__ __forceinline__ bool operator!=(End) const { return index < walk.tiles(); }
  };

  /// At the first tile of which this cluster has steps.
  __device__ __forceinline__ Iterator begin() const {
    if (!Shape::kStreamK || shared_tiles == 0) return {*this, cluster(), 0, 0};
    const int first = share_begin(cluster()), after = share_begin(cluster() + 1);
    return {*this, first < after ? first / k_steps : shared_tiles + cluster(), first, after};
  }
  /// The clusters that have steps of a tile.
  __device__ __forceinline__ Sharers sharers(const TileSteps& tile) const {
    if (tile.index >= shared_tiles) return {1, 0, 0};
    const int first = cluster_at(tile.index * k_steps + kFewestSteps - 1);
    const int last = cluster_at((tile.index + 1) * k_steps - kFewestSteps);
    // No two parts have the same place: from one part to the next either the tile or the cluster changes.
    return {last - first + 1, cluster() - first, tile.index + first};
  }

 private:
  __device__ __forceinline__ static int cluster() { return static_cast<int>(blockIdx.x) / Shape::kBlocks; }

  /// This block's part of a tile, of which its cluster has the steps that lie between `begin` and `end`.
  __device__ __forceinline__ TileSteps steps(int index, int begin, int end) const {
    if (index >= tiles()) return {};
    const Place place = Shape::place(static_cast<int>(blockIdx.x) % Shape::kBlocks);
    ladder::TileIndex tile = ladder::grouped_tile(index, tile_rows, tile_columns, group);
    tile.row = tile.row * Shape::kClusterM + place.m;
    tile.column = tile.column * Shape::kClusterN + place.n;
    int first = 0, after = k_steps;
    if (Shape::kStreamK && index < shared_tiles) {
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

  /// The first step of a cluster's share. An end of fewer than kFewestSteps steps goes to the neighbour: its
  /// sums would not be worth sending.
  __device__ __forceinline__ int share_begin(int cluster) const {
    const int begin = shared_tiles * k_steps * cluster / clusters, step = begin % k_steps;
    if (step < kFewestSteps) return begin - step;
    return k_steps - step < kFewestSteps ? begin - step + k_steps : begin;
  }
  /// The last cluster whose share began at or before `step`, before ends were given away.
  __device__ __forceinline__ int cluster_at(int step) const {
    return ((step + 1) * clusters - 1) / (shared_tiles * k_steps);
  }
};

/// In global memory: the sums of all parts, and how many parts of each block's tile have arrived, which is 0
/// between two launches.
struct Workspace {
  float4* sums = nullptr;
  unsigned* arrived = nullptr;
};

/// Adds up the parts of a block's tile. A block stores its part and counts itself; of two parts the last need
/// not be stored. The last to arrive adds up all, always in the same order, so that the result does not
/// depend on who was last. No block waits for another. All threads that compute call it.
/// @param part which block of its cluster this is
/// @param d the sums of this block's part; if the tile is complete, of all
/// @param all_there a place in shared memory
/// @returns whether the tile is complete
template <class Part, int kCount>
__device__ __forceinline__ bool add_parts(const Part& part, float (&d)[kCount], const auto& walk,
                                          const TileSteps& tile, const Workspace& workspace,
                                          bool& all_there) {
  const Sharers sharers = walk.sharers(tile);
  if (sharers.count == 1) return true;
  constexpr int kFloats = Part::kShare / 2, kThreads = Part::kComputeThreads,
                kPieces = kFloats / 4 * kThreads;
  static_assert(Part::kClusterK <= kFewestSteps, "each block that splits K needs a step of each part");
  const int rank = part.rank(part.m, part.n, part.k);
  float4* const parts =
      workspace.sums + (sharers.place * Part::kBlocks + rank) * kPieces + static_cast<int>(threadIdx.x);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(
      workspace.arrived[tile.index * Part::kBlocks + rank]);

  // Each warp has 16 rows. Those that C does not have need no sums.
  const bool has_rows = tile.row * Part::kTile.m + int(threadIdx.x) / ladder::kWarp * 16 < walk.rows;

  // A share begins within a tile and ends within another. So the block with the first of two parts mostly
  // comes last, and then need not store it.
  bool is_last = false;
  if (sharers.count == 2 && sharers.me == 0) {
    ptx::named_barrier_sync(1, kThreads);  // all have read all_there of the tile before
    if (threadIdx.x == 0) all_there = arrived.load(cuda::memory_order_acquire) == 1;
    ptx::named_barrier_sync(1, kThreads);
    is_last = all_there;
  }
  if (!is_last) {
    if (has_rows) {
#pragma unroll
      for (int i = 0; i < kFloats; i += 4)
        parts[sharers.me * Part::kBlocks * kPieces + i / 4 * kThreads] =
            make_float4(d[i], d[i + 1], d[i + 2], d[i + 3]);
    }
    ptx::named_barrier_sync(1, kThreads);  // all threads have stored: one may speak for them
    if (threadIdx.x == 0)
      all_there = arrived.fetch_add(1, cuda::memory_order_acq_rel) + 1 == unsigned(sharers.count);
    ptx::named_barrier_sync(1, kThreads);
    if (!all_there) return false;
  }
  if (threadIdx.x == 0) arrived.store(0, cuda::memory_order_relaxed);  // for the next launch

  // Of two parts it does not matter which is added to which.
  if (sharers.count > 2) ladder::clear(d);
#pragma unroll 1
  for (int of = 0; of < sharers.count && has_rows; ++of) {
    if (sharers.count == 2 && of == sharers.me) continue;
#pragma unroll
    for (int i = 0; i < kFloats; i += 4) {
      const float4 sum = parts[of * Part::kBlocks * kPieces + i / 4 * kThreads];
      d[i] += sum.x, d[i + 1] += sum.y, d[i + 2] += sum.z, d[i + 3] += sum.w;
    }
  }
  return true;
}

}  // namespace lesson06::any_shape
