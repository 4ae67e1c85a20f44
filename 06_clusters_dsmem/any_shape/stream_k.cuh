/// @file
/// Stream-K, a hybrid (after Osama et al., 2023): whole waves of tiles, and the last wave split along K, so
/// that all clusters have work. Partial sums are added up in global memory: the fix-up.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/atomic>

#include "06_clusters_dsmem/any_shape/sharing.hpp"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/named_barrier.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson06::any_shape {

/// Named barriers: of all compute threads, and one for each warpgroup.
constexpr int kFixUpBarrier = 1, kFirstWarpgroupBarrier = 2;

/// Some K steps of a tile of C, and what a block's loads bring for each.
///
/// TMA would fill with zeros what lies outside A and B, but takes longer for a row of zeros than for a row of
/// A. So these rows are not loaded: what shared memory holds there only reaches sums that are not stored. But
/// every block loads at least one chunk of 8 rows: if block Y did not wait for X's bytes, it could release
/// X's slot twice before Z has released it once, and X would take the second arrival for Z's.
struct TileSteps : ladder::TileIndex {
  int first_step, after_step;  ///< those of this block
  int index;                   ///< of the tile in the walk
  int part;                    ///< of a shared tile, which of its contributors this cluster is
  bool a_is_whole;             ///< all rows of A that this block loads exist; else it loads A's last box
  int b_columns;               ///< columns of the tile of B that are loaded, a multiple of 64
  uint32_t bytes;              ///< that arrive in a slot
};

/// Where a block stands in its cluster.
struct Place {
  int m, n, k;  ///< which of the kClusterM, kClusterN and kClusterK blocks it is
};

/// What there is to do, as the host tells the kernel.
struct Work : ladder::TileWalk {  // a tile is that of a whole cluster
  int rows, columns;              ///< of C; with swapped operands of C transposed, as all tiles here
  int rows_at_end;                ///< of A's last box
  int k_steps;                    ///< of a tile
  Sharing shared;                 ///< of no tiles without stream-K
  int clusters;                   ///< of the grid
};

/// What the clusters of a Shape walk over: first the shared tiles, each cluster an equal part of one tile or
/// the rests of several, then whole tiles, as a TileWalk does. A tile of the walk is that of a whole cluster.
///
/// The extents of tile and cluster are constants of the kernel, so that divisions by them are shifts and
/// multiplications, which do not delay the first load.
template <class Shape>
struct StepWalk : Work {
  struct Iterator {
    const StepWalk& walk;
    int index, part;                           ///< the tile, and which part of it, if it is shared
    TileSteps tile = walk.steps(index, part);  ///< computed ahead, while products run

    __device__ __forceinline__ const TileSteps& operator*() const { return tile; }
    __device__ __forceinline__ void operator++() {
      if (!Shape::kStreamK || index >= walk.shared.tiles)
        index += walk.clusters;
      else if (part == walk.shared.parts && index + 1 < walk.after_rests())
        ++index;
      else
        index = walk.shared.tiles + cluster(), part = 0;
      tile = walk.steps(index, part);
    }
    __device__ __forceinline__ bool operator!=(End) const { return index < walk.tiles(); }
  };

  /// At the cluster's part of a shared tile, its first rest, or its first whole tile.
  __device__ __forceinline__ Iterator begin() const {
    if (!Shape::kStreamK || shared.tiles == 0) return {*this, cluster(), 0};
    const int part = cluster() / shared.tiles;
    if (part < shared.parts) return {*this, cluster() % shared.tiles, part};
    if (first_rest() < after_rests()) return {*this, first_rest(), shared.parts};
    return {*this, shared.tiles + cluster(), 0};
  }
  /// The clusters that compute steps of a tile.
  __device__ __forceinline__ int contributors(const TileSteps& tile) const {
    return tile.index < shared.tiles ? shared.contributors() : 1;
  }

 private:
  __device__ __forceinline__ static int cluster() { return static_cast<int>(blockIdx.x) / Shape::kBlocks; }

  /// The rests that this cluster computes are those of the tiles from first_rest() on, up to but not
  /// including after_rests().
  __device__ __forceinline__ int first_rest() const {
    return (cluster() - shared.tiles * shared.parts) * shared.rests;
  }
  __device__ __forceinline__ int after_rests() const {
    return min(first_rest() + shared.rests, shared.tiles);
  }

  /// What this block computes of a tile or, if it is shared, of a part.
  __device__ __forceinline__ TileSteps steps(int index, int part) const {
    if (index >= tiles()) return {};
    const Place place = Shape::place(static_cast<int>(ptx::cluster_block_rank()));
    ladder::TileIndex tile = ladder::grouped_tile(index, tile_rows, tile_columns, group);
    tile.row = tile.row * Shape::kClusterM + place.m;
    tile.column = tile.column * Shape::kClusterN + place.n;
    int first = 0, after = k_steps;
    if (Shape::kStreamK && index < shared.tiles) {
      const int in_parts = k_steps - shared.rest;
      first = part < shared.parts ? in_parts * part / shared.parts : in_parts;
      if (part < shared.parts) after = in_parts * (part + 1) / shared.parts;
    }
    const int count = after - first;

    const int down = tile.row * Shape::kTile.m, across = tile.column * Shape::kTile.n;
    // Of A and B, which do not change places:
    const int rows_left = max(Shape::kSwaps ? columns - across : rows - down, 0),
              columns_left = max(Shape::kSwaps ? rows - down : columns - across, 1);
    const int whole = min(rows_left / Shape::kLoadedRows, Shape::kReceiversOfA);
    const int a_rows = Shape::kLoadedRows * whole + rows_at_end * (Shape::kReceiversOfA - whole);
    const int b_columns = min(64 * ladder::tiles_over(columns_left, 64), Shape::TileB::kColumns);
    return {tile,
            first + count * place.k / Shape::kClusterK,
            first + count * (place.k + 1) / Shape::kClusterK,
            index,
            part,
            (Shape::kSwaps ? place.m : place.n) < whole,
            b_columns,
            static_cast<uint32_t>((a_rows + b_columns) * Shape::kTile.k * sizeof(__nv_bfloat16))};
  }
};

/// In global memory: the partial sums of all contributors, and for each meeting of two whether one has
/// arrived, which is 0 between two launches.
struct Workspace {
  float4* sums = nullptr;
  unsigned* arrived = nullptr;
};

/// The fix-up: adds up the partial sums of a block's tile, by a tree: two neighbours meet, then two pairs,
/// then two pairs of pairs, until one block has all. Of two that meet, the block that comes first stores its
/// sums and is done; the other block reads them and goes on. No block waits for another. The bits of the sum
/// are the same whichever comes first, since a + b = b + a. All compute threads call it.
/// @param block which block of its cluster this is
/// @param d the partial sums of this block; if the tile is complete, its sums
/// @returns whether the tile is complete
template <class Block, int kCount>
__device__ __forceinline__ bool fix_up(const Block& block, float (&d)[kCount], const auto& walk,
                                       const TileSteps& tile, const Workspace& workspace) {
  constexpr int kFloats = Block::kOwnN / 2, kThreads = Block::kComputeThreads,
                kPieces = kFloats / 4 * kThreads;
  static_assert(Block::kClusterK <= kMinSteps, "each block that splits K needs a step of each shared tile");
  const int contributors = walk.contributors(tile), rank = block.rank(block.m, block.n, block.k);
  // Each warp has 16 rows. Rows that C does not have need no sums.
  const bool has_rows = tile.row * Block::kTile.m + int(threadIdx.x) / ladder::kWarp * 16 < walk.rows;

#pragma unroll 1
  for (int distance = 1; distance < contributors; distance *= 2) {
    const int first = tile.part / (2 * distance) * (2 * distance), second = first + distance;
    if (second >= contributors) continue;  // there is no neighbour
    const bool am_first = tile.part < second;
    const auto place_of = [&](int contributor) {
      return (tile.index * contributors + contributor) * Block::kBlocks + rank;
    };
    const auto sums_of = [&](int contributor) {
      return workspace.sums + place_of(contributor) * kPieces + static_cast<int>(threadIdx.x);
    };
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(workspace.arrived[place_of(second)]);

    // One thread asks the count; all learn the answer.
    const bool asks = threadIdx.x == 0;
    const auto all_learn = [](bool yes) { return ptx::named_barrier_or(kFixUpBarrier, kThreads, yes); };

    // If the second is there already, these sums need not be stored.
    const bool other_is_there = am_first && all_learn(asks && arrived.load(cuda::memory_order_acquire) == 1);
    if (!other_is_there) {
      if (has_rows) {
        float4* const mine = sums_of(am_first ? first : second);
#pragma unroll
        for (int i = 0; i < kFloats; i += 4)
          mine[i / 4 * kThreads] = make_float4(d[i], d[i + 1], d[i + 2], d[i + 3]);
      }
      // All threads have stored, so one thread can release all stores.
      ptx::named_barrier_sync(kFixUpBarrier, kThreads);
      const bool am_last = all_learn(asks && arrived.fetch_add(1, cuda::memory_order_acq_rel) == 1);
      if (!am_last) return false;
    }
    if (asks) arrived.store(0, cuda::memory_order_relaxed);  // for the next launch
    if (has_rows) {
      const float4* const other = sums_of(am_first ? second : first);
#pragma unroll
      for (int i = 0; i < kFloats; i += 4) {
        const float4 sum = other[i / 4 * kThreads];
        d[i] += sum.x, d[i + 1] += sum.y, d[i + 2] += sum.z, d[i + 3] += sum.w;
      }
    }
  }
  return true;
}

}  // namespace lesson06::any_shape
