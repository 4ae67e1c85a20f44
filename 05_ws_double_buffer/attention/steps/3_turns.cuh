/// @file
/// Attention, step 3: turns. While one warpgroup computes a softmax, the other has the tensor cores.
///
/// Added since step 2: the products of a warpgroup, those with a block of V and with the next block of K, are
/// its turn. Left to themselves, both warpgroups multiply at one time, and then both compute a softmax.
#pragma once
#include "05_ws_double_buffer/attention/softmax.cuh"
#include "05_ws_double_buffer/attention/tiles.cuh"
#include "05_ws_double_buffer/attention/turn.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/registers.cuh"

namespace lesson05::attention::turns {

constexpr int kWarpgroups = 2;              ///< that compute
constexpr int kQueries = 64 * kWarpgroups;  ///< of a tile
constexpr int kLoaderWarp = kWarpgroups * kWarpsPerWarpgroup;
constexpr int kThreads = (kWarpgroups + 1) * kWarpgroup;
constexpr int kMoverRegisters = 24, kComputeRegisters = 240;  ///< 128 * 24 + 256 * 240 = 384 * 168
constexpr int kSlots = 4;
using Storage = SharedStorage<kQueries, kSlots>;

/// One thread keeps the ring full.
__device__ __forceinline__ void load_tiles(Storage& smem, const TensorMaps& maps, const Tile& tile) {
  Producer pipe_q(smem.pipe_q);
  Producer pipe_kv(smem.pipe_kv);
  load_tile(smem.q, pipe_q, maps.q, tile.first_query, tile.head);
  for (int block = 0; block < tile.blocks; ++block) {
    load_tile(smem.kv, pipe_kv, maps.k, block * kKeys, tile.kv_head);
    load_tile(smem.kv, pipe_kv, maps.v, block * kKeys, tile.kv_head);
  }
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

  // [loop]
  for (int block = 1; block < tile.blocks; ++block) {
    turn.wait();
    start_sums(o, weights, smem.kv[pipe_kv.consumer_wait()]);
    start_scores(s, smem.q[0], row, smem.kv[pipe_kv.consumer_wait()]);
    turn.pass();  // before these products are finished: the other's queue up right behind them
    finish<1>(o);
    ptx::keep_in_registers(weights);
    pipe_kv.consumer_release(elected);
    finish(s);
    pipe_kv.consumer_release(elected);

    mask(s, tile.first_query + row, block * kKeys, p);
    softmax.update(s);
    softmax.rescale(o);
    to_weights(s, weights);
  }
  // [loop]
  turn.wait();
  start_sums(o, weights, smem.kv[pipe_kv.consumer_wait()]);
  turn.end();
  finish(o);
  ptx::keep_in_registers(weights);
  pipe_kv.consumer_release(elected);
  softmax.finish(o);
  store_fragment(o, p.o + size_t(tile.head) * p.length * kDim, tile.first_query + row, 0, p.length, kDim);
}

/// A block of threads for each tile.
__global__ void __launch_bounds__(kThreads, 1)
    compute(const __grid_constant__ TensorMaps maps, const Attention p) {
  auto& smem = shared_storage<Storage>();
  if (threadIdx.x == 0) {
    smem.init(kWarpgroups);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const Tile tile = make_tile(p, kQueries, blockIdx.x);
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
  launch_tiles<Storage>(compute, "05_attention_3", kQueries, kThreads, p, stream);
}

}  // namespace lesson05::attention::turns
