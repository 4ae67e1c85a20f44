/// @file
/// Attention, step 1: one warpgroup multiplies, computes a softmax, and multiplies again.
///
/// The scores of 64 queries with all keys do not fit into registers. So K and V come in blocks, and the
/// softmax is computed online: what was summed up is corrected where a later block has a larger score.
#pragma once
#include "05_ws_double_buffer/attention/softmax.cuh"
#include "05_ws_double_buffer/attention/tiles.cuh"

namespace lesson05::attention::one_warpgroup {

constexpr int kQueries = 64;  ///< of a tile
constexpr int kThreads = kWarpgroup;
constexpr int kSlots = 4;
using Storage = SharedStorage<kQueries, kSlots>;

/// A block of threads for each tile.
__global__ void __launch_bounds__(kThreads, 1)
    compute(const __grid_constant__ TensorMaps maps, const Attention p) {
  auto& smem = shared_storage<Storage>();
  const bool elected = threadIdx.x == 0;
  constexpr int row = 0;  // of the tile: there is one warpgroup
  if (elected) {
    smem.init(1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const Tile tile = make_tile(p, kQueries, blockIdx.x);
  Producer load_q(smem.pipe_q);
  Producer load_kv(smem.pipe_kv);
  const auto load = [&](int i) {  // number i in the order of their use
    if (elected && i < 2 * tile.blocks)
      load_tile(smem.kv, load_kv, i % 2 ? maps.v : maps.k, i / 2 * kKeys, tile.kv_head);
  };
  if (elected) load_tile(smem.q, load_q, maps.q, tile.first_query, tile.head);
  for (int i = 0; i < kSlots; ++i) load(i);

  Consumer pipe_q(smem.pipe_q);
  Consumer pipe_kv(smem.pipe_kv);
  Softmax softmax;
  Sums o;
  clear(o);
  pipe_q.consumer_wait();
  // [loop]
  for (int block = 0; block < tile.blocks; ++block) {
    Scores s;
    start_scores(s, smem.q[0], row, smem.kv[pipe_kv.consumer_wait()]);
    finish(s);
    pipe_kv.consumer_release(elected);
    load(2 * block + kSlots);

    mask(s, tile.first_query + row, block * kKeys, p);
    softmax.update(s);
    softmax.rescale(o);
    Weights weights;
    to_weights(s, weights);

    start_sums(o, weights, smem.kv[pipe_kv.consumer_wait()]);
    finish(o);
    ptx::keep_in_registers(weights);
    pipe_kv.consumer_release(elected);
    load(2 * block + 1 + kSlots);
  }
  // [loop]
  softmax.finish(o);
  store_fragment(o, p.o + size_t(tile.head) * p.length * kDim, tile.first_query + row, 0, p.length, kDim);
}

/// Starts it on the stream, a block for each tile. Throws std::invalid_argument for bad extents.
inline void launch(const Attention& p, cudaStream_t stream) {
  launch_tiles<Storage>(compute, "05_attention_1", kQueries, kThreads, p, stream);
}

}  // namespace lesson05::attention::one_warpgroup
