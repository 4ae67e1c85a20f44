/// @file
/// The choices of lesson 06 at compile time and at run time, what a block keeps in shared memory, and which
/// part of its cluster's work it does.
#pragma once
#include "06_clusters_dsmem/partial_sums.cuh"
#include "common/device/cluster_pipeline.cuh"
#include "common/device/cores.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/cluster.cuh"

namespace lesson06 {

/// The tile of C, the blocks that share tiles of B, the blocks that split K.
template <int kTileM, int kTileN, int kBlocksM, int kBlocksK>
struct Shape {
  static constexpr int kClusterM = kBlocksM, kClusterK = kBlocksK, kBlocks = kClusterM * kClusterK;
  static constexpr ladder::TileShape kTile{kTileM, kTileN, 64};
  /// Two warpgroups compute where there are rows for both; of 256 rows each takes two fragments of 64.
  static constexpr int kWarpgroups = kTileM < 128 ? 1 : 2;
  static constexpr int kRows = kTileM / kWarpgroups, kFragments = kRows / 64;
  static constexpr int kThreads = (kWarpgroups + 1) * ladder::kWarpgroup;
  /// Warps of the movers' warpgroup: the loader, and a storer for each warpgroup that computes.
  static constexpr int kLoaderWarp = kWarpgroups * ladder::kWarpsOfWarpgroup, kStorerWarp = kLoaderWarp + 1;
  static constexpr bool kMovesRegisters = kWarpgroups == 2;
  static constexpr int kMoverRegisters = 40, kComputeRegisters = 232;

  static constexpr int kShare = kTileN / kClusterK;  ///< columns of C that this block sums up and stores
  static_assert(kShare % 64 == 0 && kTileN / 64 % kClusterM == 0, "TMA moves panels of 64 columns");
  static_assert(kClusterK == 1 || kFragments == 1,
                "K is split where tiles are few, not where they are large");

  using Core = ladder::WgmmaCore<kTile.n>;
  using TileA = ladder::SwizzledTile<kTile.m, kTile.k>;
  using TileB = ladder::SwizzledTile<kTile.k, kTile.n>;
  using StagedC = ladder::SwizzledTile<64, 64>;
  using SumInbox = Inbox<kClusterK, kShare / 2>;
  static constexpr int kStagedSlots = 2;  ///< one is filled while TMA reads the other

  /// As many slots as fit beside the staging tiles, the inboxes and the barriers, up to 8.
  static constexpr int kBlockBytes = 227 * 1024, kBarrierBytes = 1024;
  static constexpr int kOtherBytes =
      kBarrierBytes + kWarpgroups * int(kStagedSlots * sizeof(StagedC) + sizeof(SumInbox));
  static constexpr int kSlotsThatFit = (kBlockBytes - kOtherBytes) / int(sizeof(TileA) + sizeof(TileB));
  static constexpr int kSlots = kSlotsThatFit < 8 ? kSlotsThatFit : 8;
};

/// The ring, and for each compute warpgroup a small ring of staging tiles and an inbox.
template <class Shape>
struct SharedStorage {
  typename Shape::TileA a[Shape::kSlots];
  typename Shape::TileB b[Shape::kSlots];
  typename Shape::StagedC c[Shape::kWarpgroups][Shape::kStagedSlots];
  typename Shape::SumInbox inbox[Shape::kWarpgroups];
  ladder::Pipeline<Shape::kSlots> pipe_lc;
  ladder::Pipeline<Shape::kStagedSlots> pipe_cs[Shape::kWarpgroups];
};

/// What the host decides at run time.
struct Order {
  int group;          ///< tile rows that are walked together; see grouped_tile
  bool turns;         ///< see load_tiles
  bool begins_early;  ///< before the launch before it has ended; see LaunchConfig
  int spare_sms;      ///< multiprocessors that are left to other kernels
};

/// What a block does of its cluster's work. Ranks run down the rows of C first.
template <class Shape>
struct Part {
  int m, k;                    ///< which of the kClusterM, of the kClusterK blocks this is
  int first_step, after_step;  ///< its K steps

  __device__ __forceinline__ explicit Part(int k_steps) {
    const int rank = static_cast<int>(ptx::cluster_block_rank());
    m = rank % Shape::kClusterM, k = rank / Shape::kClusterM;
    first_step = k_steps * k / Shape::kClusterK, after_step = k_steps * (k + 1) / Shape::kClusterK;
  }
  /// The rank of a block of the cluster.
  __device__ __forceinline__ static uint32_t rank(int m, int k) { return m + Shape::kClusterM * k; }
  /// The first row of C of this block's tile, for a tile of the cluster.
  __device__ __forceinline__ int row(ladder::TileIndex tile) const {
    return (tile.row * Shape::kClusterM + m) * Shape::kTile.m;
  }
  /// The first column of C of this tile, the same for all blocks of the cluster.
  __device__ __forceinline__ int column(ladder::TileIndex tile) const { return tile.column * Shape::kTile.n; }
};

}  // namespace lesson06
