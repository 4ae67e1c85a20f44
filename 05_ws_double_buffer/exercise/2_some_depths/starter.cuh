/// @file
/// Exercise 05.2: a product that is right for some depths and not for others.
///
/// A is lower triangular, in tiles: row of tiles t has something other than zeros in columns 0 .. t of tiles.
/// So tile t of C takes t + 1 steps, or all where a is not as wide. Persistent blocks of a loader and a
/// compute warpgroup, with a ring of three slots between them, and the handshake written by hand. The product
/// is right for k = 64, and not for k = 192. Find the mistake with what the CPU device reports, and mend it.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "common/cuda/tensor_map.hpp"
#include "common/device/cores.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace exercise {

constexpr int kTile = 64;  ///< rows and columns of a tile of C, and the depth of a step
constexpr int kSlots = 3;
constexpr int kThreads = ladder::kWarpgroup + ladder::kWarp;  ///< four warps compute, one thread loads
using Tile = ladder::SwizzledTile<kTile, kTile>;

struct SharedStorage {
  Tile a[kSlots], b[kSlots];
  ptx::Mbarrier full[kSlots], empty[kSlots];  ///< one arrival each: of the loader with bytes; of compute
};

struct TensorMaps {
  CUtensorMap a, b;
};

/// C has `tiles` tiles below each other. Block b computes tiles b, b + gridDim.x, ..., each in at most
/// k_steps steps.
struct Work {
  int tiles, k_steps;
};

// Read docs/concepts/mbarriers_and_phases.md and common/ptx/mbarrier.cuh.
// >>> yours
/// One thread fills the ring.
__device__ inline void load_tiles(SharedStorage& smem, const TensorMaps& maps, const Work& work) {
  int number = 0;  // of the step, in all tiles of this block
  for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
    for (int step = 0; step < work.k_steps; ++step) {
      if (step > tile) continue;  // a's tile is zero
      const int slot = number % kSlots, parity = number / kSlots % 2;
      ptx::mbarrier_wait(&smem.empty[slot], parity ^ 1);
      ptx::mbarrier_arrive_expect_bytes(&smem.full[slot], 2 * sizeof(Tile));
      ptx::tma_load(&smem.a[slot], &maps.a, step * kTile, tile * kTile, &smem.full[slot]);
      ptx::tma_load(&smem.b[slot], &maps.b, 0, step * kTile, &smem.full[slot]);
      ++number;
    }
  }
}

/// Four warps empty it.
__device__ inline void compute_tiles(SharedStorage& smem, __nv_bfloat16* c, const Work& work) {
  int number = 0;
  for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
    ladder::WgmmaCore<kTile> core;
    for (int step = 0; step < work.k_steps; ++step, ++number) {
      if (step > tile) continue;
      const int slot = number % kSlots, parity = number / kSlots % 2;
      ptx::mbarrier_wait(&smem.full[slot], parity);
      core.start(smem.a[slot], 0, smem.b[slot], step == 0);
      core.finish<0>();
      if (threadIdx.x == 0) ptx::mbarrier_arrive(&smem.empty[slot]);
    }
    ladder::store_fragment(core.d, c, tile * kTile, 0, work.tiles * kTile, kTile);
  }
}
// <<<

__global__ void __launch_bounds__(kThreads, 1)
    multiply(const __grid_constant__ TensorMaps maps, __nv_bfloat16* c, const Work work) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&smem.full[slot], 1);
      ptx::mbarrier_init(&smem.empty[slot], 1);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < ladder::kWarpgroup)
    compute_tiles(smem, c, work);
  else if (threadIdx.x == ladder::kWarpgroup)
    load_tiles(smem, maps, work);
}

/// c [tiles * kTile, kTile] = a · b, with k_steps * kTile columns of a, which is zero above its diagonal.
inline void launch_multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                            const Work& work, int blocks) {
  ladder::launch(
      multiply,
      {.name = "multiply",
       .grid = dim3(blocks),
       .block = dim3(kThreads),
       .shared_bytes = sizeof(SharedStorage)},
      TensorMaps{ladder::make_tensor_map(a, work.tiles * kTile, work.k_steps * kTile, kTile, kTile),
                 ladder::make_tensor_map(b, work.k_steps * kTile, kTile, kTile, kTile)},
      c, work);
}

}  // namespace exercise
