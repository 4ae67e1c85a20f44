/// @file
/// Lesson 03 with other ways to copy, with any number of slots, and with any core: what the pipeline of each
/// thread, that of the whole block, cooperative groups and plain loads make of the same ring.
#pragma once
#include "03_double_buffer/gemm.cuh"
#include "03_double_buffer/variants/copies.cuh"

namespace lesson03::copies {

template <class Core>
constexpr int kThreads =
    kTile.m* ladder::kWarpgroup / Core::kRows;  ///< a warpgroup multiplies kRows rows of A
/// Two blocks share a multiprocessor while their rings fit into its 228 KB and their registers into its 64 K.
template <int kSlots, class Core>
constexpr int kBlocksPerSm = kSlots <= 3 ? Core::kBlocksPerSm : 1;

/// The ring. Slot s holds tiles s, s + kSlots, s + 2 * kSlots, ... along k.
template <int kSlots, class Pipe>
struct SharedStorage {
  TileA a[kSlots];
  TileB b[kSlots];
  typename Pipe::template SharedState<kSlots> pipe;
};

/// Each block computes one tile of C; n and k are multiples of 8.
template <int kSlots, class Pipe, class Core>
__global__ void __launch_bounds__(kThreads<Core>, kBlocksPerSm<kSlots, Core>) gemm(const Gemm p) {
  auto& smem = ladder::shared_storage<SharedStorage<kSlots, Pipe>>();
  const auto tile =
      ladder::grouped_tile(blockIdx.x, ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int k_tiles = ladder::tiles_over(p.k, kTile.k);

  ladder::TileShare<TileA, kThreads<Core>> a_share(p.a, p.m, p.k, first_row, 0);
  ladder::TileShare<TileB, kThreads<Core>> b_share(p.b, p.k, p.n, 0, first_column);
  Core core;
  const int row_offset = Core::kRows * ladder::warpgroup_index();

  Pipe pipe(smem.pipe);
  const auto after = [](int slot) { return slot + 1 == kSlots ? 0 : slot + 1; };
  int load_slot = 0;
  // [load]
  const auto load = [&](int kt) {
    if (Pipe::kBlockWide && kt >= k_tiles) return;
    pipe.producer_acquire();  // every thread is through with the tile that the slot held
    if (kt < k_tiles) {
      pipe.copy(a_share, smem.a[load_slot]);
      pipe.copy(b_share, smem.b[load_slot]);
      a_share.next_right();
      b_share.next_down();
    }
    pipe.producer_commit();  // after the last tile an empty batch: the number of batches in flight stays the
                             // same
    load_slot = after(load_slot);
  };
  // [load]

  // [k_loop]
  constexpr int kAhead = kSlots - 1;  // tiles in flight while one is computed
  for (int kt = 0; kt < kAhead; ++kt) load(kt);
  for (int kt = 0, slot = 0; kt < k_tiles; ++kt, slot = after(slot)) {
    if (kAhead == 0) load(kt);  // one slot: nothing can overlap
    pipe.template consumer_wait<kAhead>();
    core.publish();
    // A thread has waited for its own copies only. After the barrier the tile is complete, and all have
    // finished with the tile before this one, so that its slot may be filled again.
    if (!Pipe::kBlockWide) __syncthreads();
    if (kAhead > 0) load(kt + kAhead);
    core.start(smem.a[slot], row_offset, smem.b[slot], kt == 0);
    core.finish();
    pipe.consumer_release();
    if (kAhead == 0 && !Pipe::kBlockWide) __syncthreads();
  }
  // [k_loop]
  ladder::store_sums<Core>(core.d, p.c, first_row + row_offset, first_column, p.m, p.n);
}

/// One block for each tile of C.
template <int kSlots, class Pipe, class Core>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const int tiles = ladder::tiles_over(p.m, kTile.m) * ladder::tiles_over(p.n, kTile.n);
  ladder::launch(gemm<kSlots, Pipe, Core>,
                 {.name = "03_double_buffer, copies",
                  .grid = dim3(tiles),
                  .block = dim3(kThreads<Core>),
                  .shared_bytes = sizeof(SharedStorage<kSlots, Pipe>),
                  .stream = stream},
                 p);
}

}  // namespace lesson03::copies
