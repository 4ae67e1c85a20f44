/// @file
/// What a block computes, and how tiles of Q, K and V come to shared memory.
#pragma once
#include "05_ws_double_buffer/attention/products.cuh"
#include "common/cuda/launch.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/ptx/tma_3d.cuh"

namespace lesson05::attention {

/// Tiles of K and V stand in the ring in the order of their use. In steps 1 to 3 that is the first block of
/// K, the first of V, the second of K, ...
template <int kQueries, int kSlots>
struct SharedStorage {
  SwizzledTile<kQueries, kDim> q[1];
  TileKv kv[kSlots];
  Pipeline<1> pipe_q;
  Pipeline<kSlots> pipe_kv;

  /// `warpgroups` release a tile.
  __device__ __forceinline__ void init(int warpgroups) {
    pipe_q.init(1, warpgroups);
    pipe_kv.init(1, warpgroups);
  }
};

/// The queries of one head from `first_query`, and how many blocks of keys they see.
struct Tile {
  int head, kv_head;  ///< counted through all sequences
  int first_query, blocks;
};

/// Tile number `index`: those of a head follow each other.
__device__ __forceinline__ Tile make_tile(const Attention& p, int queries, int index) {
  const int tiles = tiles_over(p.length, queries), head = index / tiles;
  return {head, head / (p.heads / p.kv_heads), index % tiles * queries, tiles_over(p.length, kKeys)};
}

/// Starts the copy of a tile of head `head` to the next slot, once that is empty.
template <int kRows, int kSlots>
__device__ __forceinline__ void load_tile(SwizzledTile<kRows, kDim> (&slots)[kSlots], Producer<kSlots>& pipe,
                                          const CUtensorMap& map, int first_row, int head) {
  auto& tile = slots[pipe.producer_acquire()];
  ptx::Mbarrier* const full = pipe.expect_bytes(sizeof tile);
  for (int panel = 0; panel < tile.kPanels; ++panel)  // TMA moves a panel at a time
    ptx::tma_load_3d(&tile.panels[panel], &map, panel * kPanelColumns, first_row, head, full);
  pipe.producer_commit_bytes();
}

/// Launches a block of threads for each tile of `queries` queries.
template <class Storage, class... Params, class... Args>
void launch_tiles(void (*kernel)(Params...), const char* name, int queries, int threads, const Attention& p,
                  cudaStream_t stream, const Args&... args) {
  const int tiles = tiles_over(p.length, queries) * p.heads * p.batch;
  ladder::launch(kernel,
                 {.name = name,
                  .grid = dim3(tiles),
                  .block = dim3(threads),
                  .shared_bytes = sizeof(Storage),
                  .stream = stream},
                 make_tensor_maps(p, queries, kKeys), p, args...);
}

}  // namespace lesson05::attention
