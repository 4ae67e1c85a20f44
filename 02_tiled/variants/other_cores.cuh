/// @file
/// Lesson 02 with another core (common/device/cores.cuh), for GPUs without wgmma and for comparison: the
/// kernel of gemm.cuh, whose threads and sums are as many as the core wants.
#pragma once
#include "02_tiled/gemm.cuh"

namespace lesson02::other_cores {

template <class Core>
constexpr int kThreads = kTile.m* kWarpgroup / Core::kRows;  ///< a warpgroup multiplies kRows rows of A

/// Each block computes a tile of C; n and k are multiples of 8, so that a chunk is one load.
template <class Core>
__global__ void __launch_bounds__(kThreads<Core>, Core::kBlocksPerSm) gemm(const Gemm p) {
  auto& smem = shared_storage<SharedStorage>();
  const auto tile = grouped_tile(blockIdx.x, tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int k_steps = tiles_over(p.k, kTile.k);

  TileShare<TileA, kThreads<Core>> a_share(p.a, p.m, p.k, first_row, 0);
  TileShare<TileB, kThreads<Core>> b_share(p.b, p.k, p.n, 0, first_column);
  Core core;
  const int row_offset = Core::kRows * warpgroup_index();

  for (int step = 0; step < k_steps; ++step) {
    uint4 a_chunks[a_share.kChunks], b_chunks[b_share.kChunks];
    a_share.load(a_chunks);
    b_share.load(b_chunks);
    a_share.store(a_chunks, smem.a);
    b_share.store(b_chunks, smem.b);
    a_share.next_right();
    b_share.next_down();

    core.publish();
    __syncthreads();  // the tiles are complete

    core.start(smem.a, row_offset, smem.b, step == 0);
    core.finish();
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  store_sums<Core>(core.d, p.c, first_row + row_offset, first_column, p.m, p.n);
}

/// One block for each tile of C.
template <class Core>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  ladder::launch(gemm<Core>,
                 {.name = "02_tiled",
                  .grid = dim3(tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n)),
                  .block = dim3(kThreads<Core>),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

}  // namespace lesson02::other_cores
