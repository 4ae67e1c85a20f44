/// @file
/// Lesson 05's ring without roles, for the cube: what 1_ring.cuh would be if every warp did everything.
///
/// Tile, slots, TMA copies, the handshake of slots, grid and staged store are the same. But no warp only
/// loads or stores: a thread of the first warpgroup, which also computes, asks TMA for tiles and for stores
/// of C.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/wgmma_core.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/tma.cuh"

namespace lesson05::without_roles {
using namespace ladder;

constexpr TileShape kTile{128, 128, 64};
using Core = WgmmaCore<kTile.n>;
constexpr int kWarpgroups = kTile.m / Core::kRows;
constexpr int kThreads = kWarpgroups * kWarpgroup;

using TileA = SwizzledTile<kTile.m, kTile.k>;
using TileB = SwizzledTile<kTile.k, kTile.n>;

template <int kSlots>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
  SwizzledTile<kTile.m, kTile.n> c;
  Pipeline<kSlots> pipe_lc;  ///< from TMA to both warpgroups
};

/// What is loaded next: the steps of one tile of C after the other. All threads know it, though one asks:
/// else the compiler cannot tell that its registers are the same in all threads that ask, and makes a loop
/// over threads of each request.
template <int kSlots>
class Loader {
 public:
  __device__ __forceinline__ Loader(SharedStorage<kSlots>& smem, const TensorMaps& maps, const TileWalk& walk,
                                    int k_steps)
      : smem_(smem), maps_(maps), tiles_(walk.begin()), tile_(*tiles_), k_steps_(k_steps) {}

  /// One thread asks TMA for the tiles of this step, if there is one, once both warpgroups have released the
  /// slot.
  __device__ __forceinline__ void load_step() {
    if (!(tiles_ != TileWalk::End())) return;
    if (threadIdx.x < kWarp && ptx::elect_one()) {
      const int slot = position_.slot;
      ptx::mbarrier_wait(&smem_.pipe_lc.empty[slot], position_.parity ^ 1);
      ptx::Mbarrier* const full = &smem_.pipe_lc.full[slot];
      ptx::mbarrier_arrive_expect_bytes(full, sizeof(TileA) + sizeof(TileB));
      ptx::tma_load(&smem_.a[slot], &maps_.a, step_ * kTile.k, tile_.row * kTile.m, full);
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_load(&smem_.b[slot].panels[column / 64], &maps_.b, tile_.column * kTile.n + column,
                      step_ * kTile.k, full);
    }
  }

  /// Goes on to the next step. This takes a while, and needs no slot: it is done while a product runs.
  __device__ __forceinline__ void advance() {
    position_.advance();
    if (++step_ < k_steps_) return;
    step_ = 0;
    ++tiles_;
    if (tiles_ != TileWalk::End()) tile_ = *tiles_;  // divides: not for each step, and not behind the last
  }

 private:
  SharedStorage<kSlots>& smem_;
  const TensorMaps& maps_;
  RingPosition<kSlots> position_;
  TileWalk::Iterator tiles_;
  TileIndex tile_;
  int k_steps_, step_ = 0;
};

/// Persistent blocks: each walks over its share of the tiles of C.
/// @tparam kInFlight products that a warpgroup leaves unfinished when it goes on to the next step: 0 or 1
template <int kSlots, int kInFlight>
__global__ void __launch_bounds__(kThreads, 2) gemm(const __grid_constant__ TensorMaps maps, const Gemm p) {
  static_assert(kInFlight == 0 || (kInFlight == 1 && kSlots > 1));
  auto& smem = shared_storage<SharedStorage<kSlots>>();
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n)};
  const int k_steps = tiles_over(p.k, kTile.k);

  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, kWarpgroups);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  Loader<kSlots> loader(smem, maps, walk, k_steps);
  // It refills a released slot either while the next product runs, one step late, or at once, before that
  // product is started. Late leaves one slot empty for a while, but was faster with three slots and more,
  // and so is done there.
  constexpr bool kDuringProduct = kSlots > 2 && kInFlight == 0;
  constexpr int kAhead = kDuringProduct ? kSlots - 1 : kSlots;
  for (int i = 0; i < kAhead; ++i) {
    if (i > 0) loader.advance();
    loader.load_step();
  }

  const bool stores = threadIdx.x < kWarp && ptx::elect_one();  // one thread stores
  const int my_rows = Core::kRows * warpgroup_index();
  const bool releases = threadIdx.x % kWarpgroup == 0;
  Consumer pipe_lc(smem.pipe_lc);
  for (const TileIndex tile : walk) {
    Core core;
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      if (step >= kInFlight) loader.advance();
      if (kDuringProduct) loader.load_step();
      core.finish<kInFlight>();
      if (step >= kInFlight) pipe_lc.consumer_release(releases);
      if (!kDuringProduct && step >= kInFlight) loader.load_step();
    }
    if (kInFlight > 0) loader.advance();
    core.finish();
    if (kInFlight > 0) pipe_lc.consumer_release(releases);
    if (kInFlight > 0) loader.load_step();
    // [k_loop]
    if (stores) ptx::tma_store_wait_read<0>();
    __syncthreads();  // the tile before has been read
    stage_fragment(core.d, 0, smem.c, my_rows);
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    __syncthreads();
    if (stores) {
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_store(&maps.c, &smem.c.panels[column / 64], tile.column * kTile.n + column,
                       tile.row * kTile.m);
      ptx::tma_store_commit();
    }
  }
  if (stores) ptx::tma_store_wait<0>();
}

}  // namespace lesson05::without_roles
