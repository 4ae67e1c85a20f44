/// @file
/// The kernel of exercise 06.8, which moves the bytes of a product without multiplying.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace moves {

constexpr int kTileM = 64, kTileN = 128, kTileK = 64, kThreads = ladder::kWarpgroup;

/// The blocks of a cluster: kDown blocks one below the other share B, kAcross blocks beside each other share
/// A, and kSplits blocks split the K steps of a tile.
template <int kDownBlocks, int kAcrossBlocks, int kSplitBlocks>
struct ClusterShape {
  static constexpr int kDown = kDownBlocks, kAcross = kAcrossBlocks, kSplits = kSplitBlocks;
  static constexpr int kBlocks = kDown * kAcross * kSplits;
  static constexpr int kRowsOfA = kTileM / kAcross, kRowsOfB = kTileK / kDown;  ///< rows that a block loads
  /// Pieces of four sums that a thread sends to each other block that splits K with its own.
  static constexpr int kPieces = kTileM * kTileN / kSplits / 4 / kThreads;
};

template <class Shape>
struct SharedStorage {
  ladder::SwizzledTile<kTileM, kTileK> a;
  ladder::SwizzledTile<kTileK, kTileN> b;
  float4 inbox[Shape::kSplits][Shape::kPieces][kThreads];  ///< one place for each sender; its own is unused
  ptx::Mbarrier full, inbox_full;
};

struct TensorMaps {
  CUtensorMap a, b;
};

/// Moves tile after tile through one slot. All blocks synchronise after each step: only bytes are counted
/// here.
template <class Shape>
__global__ void __launch_bounds__(kThreads) move(const __grid_constant__ TensorMaps maps, const int k_steps) {
  auto& smem = ladder::shared_storage<SharedStorage<Shape>>();
  const int rank = static_cast<int>(ptx::cluster_block_rank());
  const int down = rank % Shape::kDown, across = rank / Shape::kDown % Shape::kAcross;
  const int split = rank / (Shape::kDown * Shape::kAcross);
  const auto rank_of = [](int d, int a, int s) { return d + Shape::kDown * (a + Shape::kAcross * s); };
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&smem.full, 1);
    ptx::mbarrier_init(&smem.inbox_full, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();

  const int row = (static_cast<int>(blockIdx.y) * Shape::kDown + down) * kTileM;
  const int column = (static_cast<int>(blockIdx.x) / Shape::kBlocks * Shape::kAcross + across) * kTileN;
  uint16_t need_a = 0, need_b = 0;  // the blocks that need this block's rows of A, of B
  for (int other = 0; other < Shape::kAcross; ++other) need_a |= 1 << rank_of(down, other, split);
  for (int other = 0; other < Shape::kDown; ++other) need_b |= 1 << rank_of(other, across, split);
  const int first_a = Shape::kRowsOfA * across, first_b = Shape::kRowsOfB * down;
  const int steps = k_steps / Shape::kSplits;
  for (int step = 0; step < steps; ++step) {
    const int k = (split * steps + step) * kTileK;
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_bytes(&smem.full, sizeof(smem.a) + sizeof(smem.b));
      ptx::tma_load_multicast(&smem.a.panels[0][first_a], &maps.a, k, row + first_a, &smem.full, need_a);
      for (int panel = 0; panel < kTileN / 64; ++panel)
        ptx::tma_load_multicast(&smem.b.panels[panel][first_b], &maps.b, column + 64 * panel, k + first_b,
                                &smem.full, need_b);
    }
    ptx::mbarrier_wait(&smem.full, step % 2);
    ptx::cluster_sync();
  }

  if constexpr (Shape::kSplits > 1) {
    if (threadIdx.x == 0)
      ptx::mbarrier_arrive_expect_bytes(&smem.inbox_full, (Shape::kSplits - 1) * sizeof(smem.inbox[0]));
    for (int owner = 0; owner < Shape::kSplits; ++owner)
      for (int i = 0; i < Shape::kPieces && owner != split; ++i)
        ptx::store_async(&smem.inbox[split][i][threadIdx.x], rank_of(down, across, owner),
                         make_float4(0, 0, 0, 0), &smem.inbox_full);
    ptx::mbarrier_wait_cluster(&smem.inbox_full, 0);
    ptx::cluster_sync();
  }
}

/// A [m, k] and B [k, n], row-major. m, n and k are multiples of what a cluster needs.
template <class Shape>
void launch_move(const __nv_bfloat16* a, const __nv_bfloat16* b, int m, int n, int k, int columns_of_b) {
  ladder::launch(move<Shape>,
                 {.name = "bytes",
                  .grid = dim3(n / kTileN / Shape::kAcross * Shape::kBlocks, m / kTileM / Shape::kDown),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<Shape>),
                  .cluster = dim3(Shape::kBlocks)},
                 TensorMaps{ladder::make_tensor_map(a, m, k, Shape::kRowsOfA, 64),
                            ladder::make_tensor_map(b, k, columns_of_b, Shape::kRowsOfB, 64)},
                 k / kTileK);
}

}  // namespace moves
