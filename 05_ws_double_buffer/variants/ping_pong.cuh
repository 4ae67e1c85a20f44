/// @file
/// Lesson 05 with consumers that take turns: while one warpgroup multiplies, the other finishes its tile.
///
/// In 05 both warpgroups reach the end of their common tile together, and the tensor cores rest while both
/// round, stage and hand over. Here each has tiles of its own: warpgroup 0 the first, third, ... of the
/// block's walk, warpgroup 1 those between. Only one multiplies at a time, in that order, which is also the
/// order in which the loader fills the ring. A step of one warpgroup keeps the tensor cores as busy as a step
/// of two.
///
///     warpgroup 0   multiply tile 0 | finish tile 0 .. wait | multiply tile 2 | finish tile 2
///     warpgroup 1   wait            | multiply tile 1       | finish tile 1 .. wait | multiply tile 3
///
/// The price is traffic. A thread can hold 128 accumulators, so that a warpgroup alone computes 128 x 128 or
/// 64 x 256 where two together computed 128 x 256. Bytes that TMA brings for the same 128 x 128 x 64
/// products, 512 cycles of the tensor cores:
///
///     128 x 256 together   24 KB   48 bytes a cycle
///     128 x 128            32 KB   64 bytes a cycle
///      64 x 256            40 KB   80 bytes a cycle
///
/// So the tile is 128 x 128, as two fragments of 64 rows, and the ring has the same bytes in smaller slots.
#pragma once
#include "05_ws_double_buffer/variants/ratios.cuh"
#include "common/ptx/elect.cuh"

namespace lesson05::ping_pong {

/// What lesson 05's storage and loader want to know. Here a warpgroup has a whole tile.
struct Shape {
  static constexpr int kWarpgroups = 2;
  static constexpr int kThreads = (kWarpgroups + 1) * ladder::kWarpgroup;
  static constexpr int kLoaderWarp = kWarpgroups * ladder::kWarpsPerWarpgroup, kStorerWarp = kLoaderWarp + 1;
  static constexpr ladder::TileShape kTile{128, 128, 64};
  static constexpr int kMoverRegisters = 40, kComputeRegisters = 232;

  using Core = ladder::WgmmaCore<kTile.n>;  ///< one of the fragments, 64 rows
  static constexpr int kFragments = kTile.m / 64;
  using TileA = ladder::SwizzledTile<kTile.m, kTile.k>;
  using TileB = ladder::SwizzledTile<kTile.k, kTile.n>;
  using HalfC = ladder::SwizzledTile<64, kTile.n>;

  /// As many slots as fit beside the staging tiles and a little for barriers: six.
  static constexpr int kBarrierBytes = 1024;
  static constexpr int kSlots = (ratios::kMaxSharedBytes - kWarpgroups * sizeof(HalfC) - kBarrierBytes) /
                                (sizeof(TileA) + sizeof(TileB));
};

/// Who may multiply. Warpgroup w waits at turn[w], and passes the turn on to the other.
///
/// All threads of a warpgroup pass it on. If one did for all, the turn could go to the other warpgroup and
/// come back while a slow warp still waits for the first: it would find the barrier two phases on, with the
/// parity that it had before, and wait for ever.
class Turn {
 public:
  using Barriers = ptx::Mbarrier[Shape::kWarpgroups];

  /// One thread of the block prepares them, like those of a Pipeline.
  static __device__ __forceinline__ void init(Barriers& turn) {
    for (int warpgroup = 0; warpgroup < Shape::kWarpgroups; ++warpgroup)
      ptx::mbarrier_init(&turn[warpgroup], ladder::kWarpgroup);
  }

  /// The first turn is that of warpgroup 0: as on the first lap of a ring, it waits for the parity of a phase
  /// before the first, and gets through at once.
  __device__ __forceinline__ Turn(Barriers& turn, int warpgroup)
      : mine_(&turn[warpgroup]), next_(&turn[1 - warpgroup]), parity_(warpgroup == 0) {}

  /// Waits for the turn of this warpgroup.
  __device__ __forceinline__ void wait() {
    ptx::mbarrier_wait(mine_, parity_);
    parity_ ^= 1;
  }
  /// Gives the turn to the other one.
  __device__ __forceinline__ void pass() { ptx::mbarrier_arrive(next_); }

 private:
  ptx::Mbarrier *mine_, *next_;
  uint32_t parity_;
};

/// The ring, a staging tile and its pipeline for each warpgroup; and whose turn it is.
struct SharedStorage : ratios::SharedStorage<Shape> {
  Turn::Barriers turn;
};

/// Of the block's walk warpgroup `me` takes every other tile.
struct MyTiles {
  const ladder::TileWalk& walk;
  int me;

  /// At the warpgroup's first tile.
  __device__ __forceinline__ ladder::TileWalk::Iterator begin() const {
    auto first = walk.begin();
    if (me == 1) ++first;
    first.step *= Shape::kWarpgroups;
    return first;
  }
  __device__ __forceinline__ ladder::TileWalk::End end() const { return {}; }
};

/// A warpgroup multiplies a whole tile when it is its turn, and finishes it while the other multiplies.
template <class Epilogue>
__device__ __forceinline__ void compute_tiles(SharedStorage& smem, const ladder::TileWalk& walk, int k_steps,
                                              const Epilogue& epilogue) {
  const int me = ladder::warpgroup_index();
  ladder::Consumer<Shape::kSlots> pipe_lc(smem.pipe_lc);
  ladder::Producer<1> pipe_cs(smem.pipe_cs[me]);
  Turn turn(smem.turn, me);
  const bool elected = threadIdx.x % ladder::kWarpgroup == 0;
  pipe_lc.skip(me * k_steps);  // tile 0 is not for warpgroup 1
  for (const auto tile : MyTiles{walk, me}) {
    Shape::Core cores[Shape::kFragments];
    turn.wait();
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
#pragma unroll
      for (int i = 0; i < Shape::kFragments; ++i)
        cores[i].start(smem.a[slot], 64 * i, smem.b[slot], step == 0);
#pragma unroll
      for (Shape::Core& core : cores) core.finish<Shape::kFragments>();  // those of the step before
      if (step > 0) pipe_lc.consumer_release(elected);
    }
    turn.pass();  // before these products are finished: the other's queue up right behind them
#pragma unroll
    for (Shape::Core& core : cores) core.finish<0>();
    pipe_lc.consumer_release(elected);
    pipe_lc.skip(k_steps);  // those are for the other

    const int first_column = tile.column * Shape::kTile.n;
#pragma unroll
    for (Shape::Core& core : cores) {
      pipe_cs.producer_acquire();  // waits until the storer has read what was staged before
      ladder::stage_fragment(core.d, 0, smem.c[me], 0, epilogue, first_column);
      ptx::fence_proxy_async();  // TMA reads what these threads have stored
      pipe_cs.producer_commit();
    }
  }
}

/// One thread sends what warpgroup `whose` has staged to global memory, 64 rows at a time.
__device__ __forceinline__ void store_tiles(SharedStorage& smem, const TensorMaps& maps,
                                            const ladder::TileWalk& walk, int whose) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  ladder::Consumer<1> pipe_cs(smem.pipe_cs[whose]);
  for (const auto tile : MyTiles{walk, whose}) {
    for (int row = 0; row < kTile.m; row += 64) {
      pipe_cs.consumer_wait();
#pragma unroll
      for (int column = 0; column < kTile.n; column += 64)
        ptx::tma_store(&maps.c, &smem.c[whose].panels[column / 64], tile.column * kTile.n + column,
                       tile.row * kTile.m + row);
      ptx::tma_store_commit();
      ptx::tma_store_wait_read<0>();
      pipe_cs.consumer_release();
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent blocks, as in 05. The loader is that of 05: it does not mind whose tile it fills a slot for.
template <class Epilogue>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ TensorMaps maps, const ladder::TileWalk walk, const int k_steps,
         const Epilogue epilogue) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(1, 1);  // one warpgroup empties a slot
    for (int i = 0; i < Shape::kWarpgroups; ++i) smem.pipe_cs[i].init(ladder::kWarpgroup, 1);
    Turn::init(smem.turn);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < Shape::kLoaderWarp) {
    ptx::setmaxnreg_inc<Shape::kComputeRegisters>();
    compute_tiles(smem, walk, k_steps, epilogue);
  } else {
    ptx::setmaxnreg_dec<Shape::kMoverRegisters>();
    if (ptx::elect_one()) {
      if (warp == Shape::kLoaderWarp) ratios::load_tiles<Shape>(smem, maps, walk, k_steps);
      if (warp >= Shape::kStorerWarp && warp < Shape::kStorerWarp + Shape::kWarpgroups)
        store_tiles(smem, maps, walk, warp - Shape::kStorerWarp);
    }
  }
}

/// One block for each tile of C, but no more blocks than the GPU holds at one time.
template <class Epilogue>
void launch_gemm(const Gemm& p, int group, const Epilogue& epilogue, cudaStream_t stream) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  const TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k),
                           ladder::make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           ladder::make_tensor_map(p.c, p.m, p.n, 64, 64)};
  const ladder::TileWalk walk{ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n), group};
  const auto kernel = gemm<Epilogue>;
  ladder::launch(kernel,
                 {.name = "05_ping_pong",
                  .grid = ladder::persistent_grid<SharedStorage>(kernel, Shape::kThreads, walk.tiles()),
                  .block = dim3(Shape::kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 maps, walk, ladder::tiles_over(p.k, kTile.k), epilogue);
}

}  // namespace lesson05::ping_pong
