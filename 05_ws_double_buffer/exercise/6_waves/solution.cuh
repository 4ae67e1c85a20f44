/// @file
/// Exercise 05.6: predict what persistent blocks do.
///
/// C [kM, kN] = A [kM, kK] · B [kK, kN] in bf16, on a GPU with 8 multiprocessors that hold one block each, in
/// tiles of 128 x 192. Block b computes tiles b, b + 8, b + 16, ... A ring brings 128 x 64 of A and 64 x 192
/// of B a step; beside it a block has a whole tile of C in shared memory, from where TMA stores it, and 1 KB
/// for barriers. Say what happens; the check counts it. The kernel below moves the tiles and multiplies
/// nothing.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kM = 1152, kN = 960, kK = 320;
constexpr ladder::TileShape kTile{128, 192, 64};
constexpr int kMultiprocessors = 8;
constexpr int kSharedBytes = 227 * 1024;  ///< that a block can have

// Read docs/concepts/memory_and_roofline.md and common/device/tile_walk.cuh.
// >>> yours
constexpr int kWaves = 6;           ///< tiles that block 0 computes, one after the other
constexpr int kLastBlockTiles = 5;  ///< tiles that block 7 computes
constexpr int kUsed = 93;           ///< percent of the multiprocessors' time, if every tile takes as long
constexpr int kMaxSlots = 4;        ///< of the ring, that fit
constexpr int kCopies = 900;        ///< TMA copies that all loaders start
constexpr int kBytesFromL2 = 45 * 5 * (128 * 64 + 64 * 192) * 2;  ///< that all these copies bring
// <<<

template <int kSlots>
struct SharedStorage {
  ladder::SwizzledTile<kTile.m, kTile.k> a[kSlots];
  ladder::SwizzledTile<kTile.k, kTile.n> b[kSlots];
  ladder::SwizzledTile<kTile.m, kTile.n> c;
  ladder::Pipeline<kSlots> pipe_lc;  ///< and the rest of its KB
};

/// What each block counts: its tiles, the copies that it starts, and their bytes.
struct Counts {
  float *tiles, *copies, *bytes;
};

/// One thread fills the ring, one of another warp empties it.
template <int kSlots>
__global__ void __launch_bounds__(2 * ladder::kWarp, 1)
    move_tiles(const __grid_constant__ ladder::TensorMaps maps, const ladder::TileWalk walk,
               const int k_steps, const Counts counts) {
  auto& smem = ladder::shared_storage<SharedStorage<kSlots>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int tiles = 0, copies = 0, bytes = 0;
    ladder::Producer<kSlots> pipe_lc(smem.pipe_lc);
    for (const auto tile : walk) {
      ++tiles;
      for (int step = 0; step < k_steps; ++step) {
        const int slot = pipe_lc.producer_acquire();
        auto* const full = pipe_lc.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
        ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, tile.row * kTile.m, full);
        for (int column = 0; column < kTile.n; column += 64)
          ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, tile.column * kTile.n + column,
                        step * kTile.k, full);
        copies += 1 + kTile.n / 64;
        bytes += sizeof(smem.a[slot]) + sizeof(smem.b[slot]);
        pipe_lc.producer_commit_bytes();
      }
    }
    counts.tiles[blockIdx.x] = static_cast<float>(tiles);
    counts.copies[blockIdx.x] = static_cast<float>(copies);
    counts.bytes[blockIdx.x] = static_cast<float>(bytes);
  }
  if (threadIdx.x == ladder::kWarp) {
    ladder::Consumer<kSlots> pipe_lc(smem.pipe_lc);
    for ([[maybe_unused]] const auto tile : walk) {
      for (int step = 0; step < k_steps; ++step) {
        pipe_lc.consumer_wait();
        pipe_lc.consumer_release();
      }
    }
  }
}

template <int kSlots>
void launch_move_tiles(const __nv_bfloat16* a, const __nv_bfloat16* b, const Counts& counts) {
  constexpr int kBarrierBytes = 1024;
  static_assert(sizeof(SharedStorage<kSlots>::pipe_lc) <= kBarrierBytes);
  ladder::launch(move_tiles<kSlots>,
                 {.name = "move_tiles",
                  .grid = dim3(kMultiprocessors),
                  .block = dim3(2 * ladder::kWarp),
                  .shared_bytes = sizeof(SharedStorage<kSlots>)},
                 ladder::TensorMaps{ladder::make_tensor_map(a, kM, kK, kTile.m, kTile.k),
                                    ladder::make_tensor_map(b, kK, kN, kTile.k, 64),
                                    {}},
                 ladder::TileWalk{ladder::tiles_over(kM, kTile.m), ladder::tiles_over(kN, kTile.n), 4},
                 ladder::tiles_over(kK, kTile.k), counts);
}

}  // namespace exercise
