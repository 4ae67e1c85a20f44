/// @file
/// Stream-K (Osama et al., 2023): tiles that would not fill a wave of their own are cut along K, so that all
/// clusters have the same number of K steps. Where a cluster's share ends within a tile, another goes on;
/// their sums meet in global memory.
#pragma once
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "06_clusters_dsmem/plan.hpp"
#include "common/device/cores.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_walk.cuh"
#include "common/ptx/named_barrier.cuh"

namespace lesson06 {

/// Some K steps of a tile of C.
struct TileSteps : ladder::TileIndex {
  int first_step, after_step;  ///< those of this block
  int index;                   ///< of the tile in the walk
};

/// The clusters that have steps of one tile.
struct Sharers {
  int count, me;  ///< how many, and which of them this is
  int place;      ///< of the first one's sums in the workspace; those of the others follow
};

/// The first `shared_tiles` tiles are one row of K steps, of which each of `clusters` has an equal share; the
/// others are walked over as a TileWalk does.
struct StepWalk : ladder::TileWalk {
  int cluster_columns;  ///< blocks that lie beside each other
  int k_steps;          ///< of a tile
  int shared_tiles;     ///< 0: no stream-K
  int clusters;         ///< of the grid

  struct Iterator {
    const StepWalk& walk;
    int index, begin, end;  ///< the tile, and the cluster's share of steps, counted over all shared tiles

    __device__ __forceinline__ TileSteps operator*() const {
      ladder::TileIndex tile = *TileWalk::Iterator{walk, index, 0};
      const int rank = static_cast<int>(blockIdx.x) % walk.cluster_blocks;
      tile.column = tile.column * walk.cluster_columns + rank / walk.cluster_rows % walk.cluster_columns;
      int first = 0, after = walk.k_steps;
      if (index < walk.shared_tiles) {
        first = max(first, begin - index * walk.k_steps);
        after = min(after, end - index * walk.k_steps);
      }
      // Blocks that split K divide their cluster's steps among themselves.
      const int sharers = walk.cluster_rows * walk.cluster_columns;
      const int splits = walk.cluster_blocks / sharers, mine = rank / sharers;
      const int count = after - first;
      return {tile, first + count * mine / splits, first + count * (mine + 1) / splits, index};
    }
    __device__ __forceinline__ void operator++() {
      if (index >= walk.shared_tiles)
        index += walk.clusters;
      else if ((index + 1) * walk.k_steps < end)
        ++index;
      else
        index = walk.shared_tiles + walk.cluster();
    }
    __device__ __forceinline__ bool operator!=(End) const { return index < walk.tiles(); }
  };

  /// At the first tile of which this cluster has steps.
  __device__ __forceinline__ Iterator begin() const {
    const int first = share_begin(cluster()), after = share_begin(cluster() + 1);
    return {*this, first < after ? first / k_steps : shared_tiles + cluster(), first, after};
  }
  /// The clusters that have steps of a tile.
  __device__ __forceinline__ Sharers sharers(const TileSteps& tile) const {
    if (tile.index >= shared_tiles) return {1, 0, 0};
    const int first = cluster_at(tile.index * k_steps + kFewestSteps - 1);
    const int last = cluster_at((tile.index + 1) * k_steps - kFewestSteps);
    // From one place to the next, either the tile or the cluster changes.
    return {last - first + 1, cluster() - first, tile.index + first};
  }

 private:
  __device__ __forceinline__ int cluster() const { return static_cast<int>(blockIdx.x) / cluster_blocks; }

  /// The first step of a cluster's share. An end of fewer than kFewestSteps steps goes to the neighbour: its
  /// sums would not be worth sending.
  __device__ __forceinline__ int share_begin(int cluster) const {
    if (shared_tiles == 0) return 0;
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

/// Adds up the parts of a block's tile. A block that is not the last to arrive stores its part and counts
/// itself; the last adds up all, always in the same order, so that the result does not depend on who was
/// last. No block waits for another. All threads that compute call it.
/// @param part which block of its cluster this is
/// @param d the sums of this block's part; if the tile is complete, of all
/// @param all_there a place in shared memory
/// @returns whether the tile is complete
template <class Part, int kCount>
__device__ __forceinline__ bool add_parts(const Part& part, float (&d)[kCount], const StepWalk& walk,
                                          const TileSteps& tile, const Workspace& workspace,
                                          bool& all_there) {
  const Sharers sharers = walk.sharers(tile);
  if (sharers.count == 1) return true;
  constexpr int kFloats = Part::kShare / 2, kThreads = Part::kComputeThreads,
                kPieces = kFloats / 4 * kThreads;
  const int rank = part.splitter(part.k);
  float4* const parts =
      workspace.sums + (sharers.place * Part::kBlocks + rank) * kPieces + static_cast<int>(threadIdx.x);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(
      workspace.arrived[tile.index * Part::kBlocks + rank]);

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
#pragma unroll
    for (int i = 0; i < kFloats; i += 4)
      parts[sharers.me * Part::kBlocks * kPieces + i / 4 * kThreads] =
          make_float4(d[i], d[i + 1], d[i + 2], d[i + 3]);
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
  for (int of = 0; of < sharers.count; ++of) {
    if (sharers.count == 2 && of == sharers.me) continue;
#pragma unroll
    for (int i = 0; i < kFloats; i += 4) {
      const float4 sum = parts[of * Part::kBlocks * kPieces + i / 4 * kThreads];
      d[i] += sum.x, d[i + 1] += sum.y, d[i + 2] += sum.z, d[i + 3] += sum.w;
    }
  }
  return true;
}

}  // namespace lesson06
