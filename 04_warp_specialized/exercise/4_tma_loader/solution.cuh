/// @file
/// Exercise 04.4: a loader for two rings, and for boxes that stick out.
///
/// C = a + b, where b is narrow: column c of C adds column c % kNarrow of b. A strip of 64 rows needs one
/// tile of b, and as many tiles of a as it is wide. So b has a ring of its own, with one slot that is filled
/// once for a strip; a's ring has two slots. Neither rows nor columns are multiples of a tile. Write what the
/// loading thread does, for all strips.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kSlots = 2;
constexpr int kRows = 64, kColumns = 128;  ///< of a tile of a
constexpr int kNarrow = 16;                ///< columns that b has; its tile has room for 64
constexpr int kBox = 64;                   ///< rows and columns of every box of TMA: one panel of a tile
constexpr int kWarps = 4;                  ///< warps that compute
constexpr int kComputeThreads = kWarps * ladder::kWarp, kThreads = kComputeThreads + ladder::kWarp;

struct SharedStorage {
  ladder::SwizzledTile<kRows, kColumns> a[kSlots];
  ladder::SwizzledTile<kRows, kBox> b;
  ladder::Pipeline<kSlots> pipe_a;
  ladder::Pipeline<1> pipe_b;  ///< one arrival fills a slot of either; each compute warp empties it
};

struct TensorMaps {
  CUtensorMap a, b;
};

/// One thread. Panel p of a tile holds its columns 64 p ..; compute reads b's tile before the strip's first
/// tile of a, and the tiles of a from left to right.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, int rows, int columns) {
  // Read docs/concepts/tma.md and common/device/pipeline.cuh.
  // >>> yours
  ladder::Producer<kSlots> pipe_a(smem.pipe_a);
  ladder::Producer<1> pipe_b(smem.pipe_b);
  for (int row = 0; row < rows; row += kRows) {
    pipe_b.producer_acquire();
    ptx::tma_load(&smem.b, &maps.b, 0, row, pipe_b.expect_bytes(sizeof(smem.b)));
    pipe_b.producer_commit_bytes();
    for (int column = 0; column < columns; column += kColumns) {
      const int slot = pipe_a.producer_acquire();
      ptx::Mbarrier* const full = pipe_a.expect_bytes(sizeof(smem.a[slot]));
      for (int panel = 0; panel < kColumns / kBox; ++panel)
        ptx::tma_load(&smem.a[slot].panels[panel], &maps.a, column + panel * kBox, row, full);
      pipe_a.producer_commit_bytes();
    }
  }
  // <<<
}

/// Adds, one row of a tile after the other in each warp.
__device__ inline void add_tiles(SharedStorage& smem, __nv_bfloat16* c, int rows, int columns) {
  ladder::Consumer<kSlots> pipe_a(smem.pipe_a);
  ladder::Consumer<1> pipe_b(smem.pipe_b);
  for (int row = 0; row < rows; row += kRows) {
    pipe_b.consumer_wait();
    for (int column = 0; column < columns; column += kColumns) {
      const int slot = pipe_a.consumer_wait();
      for (int i = threadIdx.x / ladder::kWarp; i < kRows && row + i < rows; i += kWarps)
        for (int j = ladder::lane_index(); j < kColumns && column + j < columns; j += ladder::kWarp)
          c[(row + i) * columns + column + j] =
              __float2bfloat16(__bfloat162float(smem.a[slot].at(i, j)) +
                               __bfloat162float(smem.b.at(i, (column + j) % kNarrow)));
      ptx::fence_proxy_async();  // TMA overwrites it through another proxy
      __syncwarp();              // the whole warp has read
      pipe_a.consumer_release(ladder::lane_index() == 0);
    }
    pipe_b.consumer_release(ladder::lane_index() == 0);
  }
}

/// One block.
__global__ void __launch_bounds__(kThreads)
    add(const __grid_constant__ TensorMaps maps, __nv_bfloat16* c, const int rows, const int columns) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_a.init(1, kWarps);
    smem.pipe_b.init(1, kWarps);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kComputeThreads)
    add_tiles(smem, c, rows, columns);
  else if (threadIdx.x == kComputeThreads)
    load_tiles(smem, maps, rows, columns);
}

/// a and C are [rows, columns], b is [rows, kNarrow]; columns is a multiple of 8.
inline void launch_add(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int rows,
                       int columns) {
  ladder::launch(
      add, {.name = "add", .grid = dim3(1), .block = dim3(kThreads), .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(a, rows, columns, kBox, kBox),
                 ladder::make_tensor_map(b, rows, kNarrow, kBox, kBox)},
      c, rows, columns);
}

}  // namespace exercise
