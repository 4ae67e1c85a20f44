/// @file
/// The choices of lesson 06 at compile time and at run time, what a block keeps in shared memory, and which
/// part of its cluster's work it does.
#pragma once
#include <algorithm>
#include <cstdint>

#include "06_clusters_dsmem/partial_sums.cuh"
#include "06_clusters_dsmem/plan.hpp"
#include "common/cuda/residency.hpp"
#include "common/device/cluster_pipeline.cuh"
#include "common/device/cores.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/cluster.cuh"

namespace lesson06 {
using namespace ladder;

/// The sums of a warpgroup: fragments of 64 rows, one below the other, that are multiplied by the same tile
/// of B.
template <int kN, int kCount>
struct Fragments {
  WgmmaCore<kN> fragments[kCount];

  /// Starts d += a[row .. row + 64 * kCount - 1][:] · b.
  __device__ __forceinline__ void start(const auto& a, int row, const auto& b, bool first) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) fragments[i].start(a, row + 64 * i, b, first);
  }
  /// Waits until at most kInFlight of the products started are unfinished.
  template <int kInFlight>
  __device__ __forceinline__ void finish() {
    if constexpr (kInFlight > 0) {
      fragments[0].template finish<kInFlight * kCount>();
    } else {
#pragma unroll
      for (auto& fragment : fragments) fragment.template finish<0>();
    }
  }
  /// Writes columns from kFirst on to the rows of the staging tile from `row` on.
  template <int kFirst>
  __device__ __forceinline__ void stage(auto& staging, int row) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) stage_fragment<kFirst>(fragments[i].d, staging, row + 64 * i);
  }
};

/// The tile of C, the blocks that share tiles of B, the blocks that split K.
template <int kTileM, int kTileN, int kBlocksM, int kBlocksK>
struct Shape {
  static constexpr int kClusterM = kBlocksM, kClusterK = kBlocksK, kBlocks = kClusterM * kClusterK;
  static constexpr TileShape kTile{kTileM, kTileN, 64};
  /// Two warpgroups compute where there are rows for both; of 256 rows each takes two fragments of 64.
  static constexpr int kWarpgroups = kTileM < 128 ? 1 : 2;
  static constexpr int kRows = kTileM / kWarpgroups, kFragments = kRows / 64;
  static constexpr int kComputeThreads = kWarpgroups * kWarpgroup;
  static constexpr int kLoaderWarp = kComputeThreads / kWarp, kStorerWarp = kLoaderWarp + 1;
  static constexpr int kThreads = kComputeThreads + kWarpgroup;
  static constexpr bool kMovesRegisters = kWarpgroups == 2;
  static constexpr int kMoverRegisters = 40, kComputeRegisters = 232;

  static constexpr int kShare = kTileN / kClusterK;  ///< columns of C that this block sums up and stores
  static_assert(kShare % 64 == 0 && kTileN / 64 % kClusterM == 0, "TMA moves panels of 64 columns");
  static_assert(kClusterK == 1 || kFragments == 1,
                "K is split where tiles are few, not where they are large");

  using Core = Fragments<kTile.n, kFragments>;
  using TileA = SwizzledTile<kTile.m, kTile.k>;
  using TileB = SwizzledTile<kTile.k, kTile.n>;
  static constexpr int kStagedN = std::min(kShare, kTileM > 128 ? 64 : 128);  ///< handed over at a time
  using StagedC = SwizzledTile<kTile.m, kStagedN>;
  using SumInbox = Inbox<kClusterK, kShare / 2>;

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
};

/// What the host decides at run time.
struct Order {
  int group;          ///< tile rows that are walked together; see grouped_tile
  bool begins_early;  ///< before the launch before it has ended; see LaunchConfig
  int spare_sms;      ///< multiprocessors that are left to other kernels
};

/// The grid of persistent clusters: as many as the GPU holds at one time beside what it spares, or as there
/// are tiles for.
template <class Shape, class... Params>
dim3 cluster_grid(void (*kernel)(Params...), int tiles, const Order& order) {
  const int resident = clusters_beside(
      order.spare_sms, Shape::kBlocks,
      resident_clusters(kernel, Shape::kThreads, sizeof(SharedStorage<Shape>), Shape::kBlocks));
  return dim3(static_cast<unsigned>(std::min(tiles, resident) * Shape::kBlocks));
}

/// All blocks of a cluster meet; a block that is alone waits for its own threads, which is faster.
template <class Shape>
__device__ __forceinline__ void meet() {
  if constexpr (Shape::kBlocks > 1)
    ptx::cluster_sync();
  else
    __syncthreads();
}

/// What a block does of its cluster's work. Ranks run down the rows of C first.
template <class Shape>
struct Part : Shape {
  int m, k;                        ///< which of the kClusterM, of the kClusterK blocks this is
  int first_step, after_step;      ///< its K steps
  int first_column, after_column;  ///< of the tile: those that it sums up and stores

  __device__ __forceinline__ explicit Part(const SharedStorage<Shape>&, int k_steps = 0) {
    const int rank = static_cast<int>(ptx::cluster_block_rank());
    m = rank % Shape::kClusterM, k = rank / Shape::kClusterM;
    first_step = k_steps * k / Shape::kClusterK, after_step = k_steps * (k + 1) / Shape::kClusterK;
    first_column = Shape::kShare * k, after_column = first_column + Shape::kShare;
  }
  /// The rank of a block of the cluster.
  __device__ __forceinline__ static uint32_t rank(int m, int k) { return m + Shape::kClusterM * k; }
  /// The blocks that need the same tiles of B, a bit for each rank.
  __device__ __forceinline__ uint16_t sharers() const {
    return static_cast<uint16_t>(((1u << Shape::kClusterM) - 1) << rank(0, k));
  }
};

}  // namespace lesson06
