/// @file
/// Attention: causal tiles load and multiply only what their queries see.
///
/// Added since step 4: a causal tile stops at its diagonal, and tiles with many blocks start first. So the
/// last to end are short ones, and multiprocessors end at about the same time. A problem that is not causal
/// takes step 4's kernel: its tiles are equally long.
#pragma once
#include <algorithm>

#include "05_ws_double_buffer/attention/softmax.cuh"
#include "05_ws_double_buffer/attention/steps/4_overlap.cuh"
#include "05_ws_double_buffer/attention/tiles.cuh"
#include "05_ws_double_buffer/attention/turn.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/registers.cuh"

namespace lesson05::attention::causal {

constexpr int kWarpgroups = 2;              ///< that compute
constexpr int kQueries = 64 * kWarpgroups;  ///< of a tile
constexpr int kLoaderWarp = kWarpgroups * kWarpsPerWarpgroup;
constexpr int kThreads = (kWarpgroups + 1) * kWarpgroup;
constexpr int kMoverRegisters = 24, kComputeRegisters = 240;  ///< 128 * 24 + 256 * 240 = 384 * 168
constexpr int kSlots = 4;
using Storage = SharedStorage<kQueries, kSlots>;

// [longest_first]
/// Tile number `index` where those that see more keys come first. Tiles of some heads that follow each other
/// alternate: they run at one time, and what they read fits into L2.
__device__ __forceinline__ Tile longest_first(const Attention& p, int index, int heads_together) {
  const int tiles = tiles_over(p.length, kQueries), group = index / (tiles * heads_together) * heads_together;
  const int heads = min(heads_together, p.heads * p.batch - group), rest = index - group * tiles;
  Tile tile = make_tile(p, kQueries, (group + rest % heads + 1) * tiles - 1 - rest / heads);
  tile.blocks = tiles_over(min(p.length, tile.first_query + kQueries), kKeys);
  return tile;
}
// [longest_first]

/// One thread keeps the ring full.
__device__ __forceinline__ void load_tiles(Storage& smem, const TensorMaps& maps, const Tile& tile) {
  Producer pipe_q(smem.pipe_q);
  Producer pipe_kv(smem.pipe_kv);
  load_tile(smem.q, pipe_q, maps.q, tile.first_query, tile.head);
  load_tile(smem.kv, pipe_kv, maps.k, 0, tile.kv_head);
  for (int block = 1; block < tile.blocks; ++block) {
    load_tile(smem.kv, pipe_kv, maps.k, block * kKeys, tile.kv_head);
    load_tile(smem.kv, pipe_kv, maps.v, (block - 1) * kKeys, tile.kv_head);
  }
  load_tile(smem.kv, pipe_kv, maps.v, (tile.blocks - 1) * kKeys, tile.kv_head);
}

/// A warpgroup computes its 64 rows of O.
__device__ __forceinline__ void compute_rows(Storage& smem, const Tile& tile, const Attention& p) {
  const int row = 64 * warpgroup_index();
  const bool elected = threadIdx.x % kWarpgroup == 0;
  Consumer pipe_q(smem.pipe_q);
  Consumer pipe_kv(smem.pipe_kv);
  const Turn turn;
  Softmax softmax;
  Scores s;
  Weights weights;
  Sums o;
  clear(o);
  pipe_q.consumer_wait();
  turn.begin();
  turn.wait();
  start_scores(s, smem.q[0], row, smem.kv[pipe_kv.consumer_wait()]);
  turn.pass();
  finish(s);
  pipe_kv.consumer_release(elected);
  mask(s, tile.first_query + row, 0, p);
  softmax.update(s);
  to_weights(s, weights);

  int next = pipe_kv.consumer_wait();  // of K, and behind the last block of K the last one of V
  for (int block = 1; block < tile.blocks; ++block) {
    turn.wait();
    start_scores(s, smem.q[0], row, smem.kv[next]);
    start_sums(o, weights, smem.kv[pipe_kv.consumer_wait()]);
    turn.pass();  // before these products are finished: the other's queue up right behind them
    finish<1>(s);
    pipe_kv.consumer_release(elected);

    mask(s, tile.first_query + row, block * kKeys, p);
    softmax.update(s);
    // It has long landed. But a wait is a branch, and ptxas moves no softmax across one: else all of it would
    // be computed behind finish(o).
    next = pipe_kv.consumer_wait();
    finish(o);
    ptx::keep_in_registers(weights);
    pipe_kv.consumer_release(elected);
    softmax.rescale(o);
    to_weights(s, weights);
  }
  turn.wait();
  start_sums(o, weights, smem.kv[next]);
  turn.end();
  finish(o);
  ptx::keep_in_registers(weights);
  pipe_kv.consumer_release(elected);
  softmax.finish(o);
  store_fragment(o, p.o + size_t(tile.head) * p.length * kDim, tile.first_query + row, 0, p.length, kDim);
}

/// A block of threads for each tile.
__global__ void __launch_bounds__(kThreads, 1)
    compute(const __grid_constant__ TensorMaps maps, const Attention p, const int heads_together) {
  auto& smem = shared_storage<Storage>();
  if (threadIdx.x == 0) {
    smem.init(kWarpgroups);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const Tile tile = longest_first(p, blockIdx.x, heads_together);
  const int warp = threadIdx.x / kWarp;
  if (warp < kLoaderWarp) {
    ptx::setmaxnreg_inc<kComputeRegisters>();
    compute_rows(smem, tile, p);
  } else {
    ptx::setmaxnreg_dec<kMoverRegisters>();
    if (warp == kLoaderWarp && ptx::elect_one()) load_tiles(smem, maps, tile);
  }
}

/// Starts it on the stream, a block for each tile. Throws std::invalid_argument for bad extents.
inline void launch(const Attention& p, cudaStream_t stream) {
  if (!p.causal) return overlap::launch(p, stream);
  // Half of an H100's 50 MB of L2 is near to a multiprocessor. K and V of so many heads fit there.
  const size_t bytes_of_head = size_t{2} * p.length * kDim * sizeof(__nv_bfloat16) * p.kv_heads / p.heads;
  const int heads_together = std::clamp<int>((24 << 20) / bytes_of_head, 1, p.heads * p.batch);
  launch_tiles<Storage>(compute, "05_attention", kQueries, kThreads, p, stream, heads_together);
}

}  // namespace lesson05::attention::causal
