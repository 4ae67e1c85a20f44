/// @file
/// Lesson 05 with two products in one kernel: C = silu(A · B1) * (A · B2), the gated half of a transformer's
/// feed-forward layer. A is loaded once, and neither product goes through memory.
///
/// The tile of B has 256 columns, as in 05: 128 of B1 and, beside them, the same 128 of B2. So the main loop
/// is that of ratios.cuh: one wgmma multiplies 64 rows of A by both, and accumulator d[i] of the
/// first product has its partner, d[i + 64], in the same thread. The epilogue folds the fragment in half in
/// registers.
///
/// The other way, a warpgroup for each B, gives the partners to different threads: one of the warpgroups
/// would have to send 64 KB of fp32 through shared memory for each tile, and wait for the other.
#pragma once
#include "05_ws_double_buffer/variants/ratios.cuh"
#include "common/host/problem/lesson.hpp"
#include "common/ptx/elect.cuh"
#include "common/ptx/tanh.cuh"

namespace lesson05::dual {

/// The ring, the roles' places and the registers of 05.
using Shape = ratios::Shape<2, 4>;
using SharedStorage = ratios::SharedStorage<Shape>;
constexpr ladder::TileShape kTile{Shape::kTile.m, Shape::kTile.n / 2, Shape::kTile.k};  ///< of C
static_assert(Shape::kStagedColumns == kTile.n, "a warpgroup stages its part of C at once");

/// x · sigmoid(x), which is x/2 · (1 + tanh(x/2)), times the other product. The tanh is one instruction; exp
/// and a division would take two of the same unit. One for each element of a tile already keeps that unit
/// busy for as long as a step of the main loop takes.
struct SiluTimes {
  __device__ __forceinline__ float operator()(float gate, float up) const {
    const float half = 0.5f * gate;
    return (half + half * ptx::tanh_approx(half)) * up;
  }
};

/// Without the silu, small integers give the same bits in every order of summation.
struct Times {
  __device__ __forceinline__ float operator()(float gate, float up) const { return gate * up; }
};

struct TensorMaps {
  CUtensorMap a, b[2], c;
};

/// The loader of 05, but for the tile of B: 128 columns of each matrix.
__device__ __forceinline__ void load_tiles(SharedStorage& smem, const TensorMaps& maps,
                                           const ladder::TileWalk& walk, int k_steps) {
  ladder::Producer<Shape::kSlots> pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.producer_acquire();
      pipe_lc.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
      ptx::tma_load(&smem.a[slot], &maps.a, step * kTile.k, tile.row * kTile.m, pipe_lc.full_barrier());
#pragma unroll
      for (int which = 0; which < 2; ++which)
#pragma unroll
        for (int column = 0; column < kTile.n; column += 64)
          ptx::tma_load(&smem.b[slot].panels[(which * kTile.n + column) / 64], &maps.b[which],
                        tile.column * kTile.n + column, step * kTile.k, pipe_lc.full_barrier());
      pipe_lc.producer_commit_bytes();
    }
  }
}

/// The main loop of ratios.cuh. Then the two halves of the fragment become one.
template <class Combine>
__device__ __forceinline__ void compute_tiles(SharedStorage& smem, const ladder::TileWalk& walk, int k_steps,
                                              const Combine& combine) {
  const int me = ladder::warpgroup_index(), my_rows = 64 * me;
  ladder::Consumer<Shape::kSlots> pipe_lc(smem.pipe_lc);
  ladder::Producer<1> pipe_cs(smem.pipe_cs[me]);
  const bool elected = threadIdx.x % ladder::kWarpgroup == 0;
  for ([[maybe_unused]] const auto tile : walk) {
    Shape::Core core;
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], step == 0);
      core.finish<1>();
      if (step > 0) pipe_lc.consumer_release(elected);
    }
    core.finish<0>();
    pipe_lc.consumer_release(elected);

    constexpr int kPairs = kTile.n / 2;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) core.d[i] = combine(core.d[i], core.d[i + kPairs]);
    pipe_cs.producer_acquire();  // waits until the storer has read what was staged before
    ladder::stage_fragment(core.d, 0, smem.c[me], 0);
    ptx::fence_proxy_async();  // TMA reads what these threads have stored
    pipe_cs.producer_commit();
  }
}

/// One thread sends what warpgroup `whose` has staged to global memory.
__device__ __forceinline__ void store_tiles(SharedStorage& smem, const TensorMaps& maps,
                                            const ladder::TileWalk& walk, int whose) {
  ladder::Consumer<1> pipe_cs(smem.pipe_cs[whose]);
  for (const auto tile : walk) {
    pipe_cs.consumer_wait();
#pragma unroll
    for (int column = 0; column < kTile.n; column += 64)
      ptx::tma_store(&maps.c, &smem.c[whose].panels[column / 64], tile.column * kTile.n + column,
                     tile.row * kTile.m + 64 * whose);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
    pipe_cs.consumer_release();
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks, with the roles of 05.
template <class Combine>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ TensorMaps maps, const ladder::TileWalk walk, const int k_steps,
         const Combine combine) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, Shape::kWarpgroups);
    for (int i = 0; i < Shape::kWarpgroups; ++i) smem.pipe_cs[i].init(ladder::kWarpgroup, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < Shape::kLoaderWarp) {
    ptx::setmaxnreg_inc<Shape::kComputeRegisters>();
    compute_tiles(smem, walk, k_steps, combine);
  } else {
    ptx::setmaxnreg_dec<Shape::kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == Shape::kLoaderWarp) load_tiles(smem, maps, walk, k_steps);
      if (warp >= Shape::kStorerWarp && warp < Shape::kStorerWarp + Shape::kWarpgroups)
        store_tiles(smem, maps, walk, warp - Shape::kStorerWarp);
    }
  }
}

/// C = combine(A · B1, A · B2), each of its elements by itself. p.b is B1, [k, n], and B2 lies after it.
template <class Combine>
void launch_gemm(const Gemm& p, int group, const Combine& combine, cudaStream_t stream) {
  const auto map_of_b = [&](int which) {
    return ladder::make_tensor_map(p.b + which * (size_t(p.k) * p.n), p.k, p.n, kTile.k, 64);
  };
  const TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k),
                           {map_of_b(0), map_of_b(1)},
                           ladder::make_tensor_map(p.c, p.m, p.n, 64, 64)};
  const ladder::TileWalk walk{ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n), group};
  const auto kernel = gemm<Combine>;
  ladder::launch(kernel,
                 {.name = "05_dual_gemm",
                  .grid = ladder::persistent_grid<SharedStorage>(kernel, Shape::kThreads, walk.tiles()),
                  .block = dim3(Shape::kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 maps, walk, ladder::tiles_over(p.k, kTile.k), combine);
}

/// C = silu(A · B1) * (A · B2) for the programs: its knobs, its limits, and other ways to the same.
const ladder::Lesson& lesson();

}  // namespace lesson05::dual
