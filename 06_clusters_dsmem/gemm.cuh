/// @file
/// Lesson 06: blocks of a cluster share.
///
/// Added since 05: kClusterM blocks, one below the other, need the same tile of B: each loads a part of it
/// and multicasts that part to all. kClusterK blocks split the K steps of one tile of C: each sends partial
/// sums to the others' shared memory, and stores the sum of its share of the columns. The tile is a choice
/// now.
#pragma once
#include "common/device/cores.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/staged_epilogue.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/device/unrolled.cuh"
#include "common/host/launch.cuh"
#include "common/host/lesson.hpp"
#include "common/host/residency.hpp"
#include "common/host/tensor_map.hpp"
#include "common/ptx/cluster.cuh"
#include "common/ptx/grid_dependency.cuh"
#include "common/ptx/registers.cuh"
#include "common/ptx/tma.cuh"

namespace lesson06 {
using ladder::Gemm;

/// What is chosen at compile time: the tile of C, the blocks that share B, the blocks that split K.
template <int kTileM, int kTileN, int kBlocksM, int kBlocksK>
struct Shape {
  static constexpr int kClusterM = kBlocksM, kClusterK = kBlocksK, kBlocks = kClusterM * kClusterK;
  static constexpr ladder::TileShape kTile{kTileM, kTileN, 64};
  /// Two warpgroups compute where there are rows for both; of 256 rows each takes two fragments of 64.
  static constexpr int kWarpgroups = kTileM < 128 ? 1 : 2;
  static constexpr int kRows = kTileM / kWarpgroups, kFragments = kRows / 64;
  static constexpr int kThreads = (kWarpgroups + 1) * ladder::kWarpgroup;
  static constexpr int kLoaderWarp = kWarpgroups * 4, kStorerWarp = kLoaderWarp + 1;
  static constexpr bool kMovesRegisters = kWarpgroups == 2;
  static constexpr int kMoverRegisters = 40, kComputeRegisters = 232;

  /// The columns of C that this block sums up and stores, 64 at a time.
  static constexpr int kShare = kTileN / kClusterK;
  static_assert(kShare % 64 == 0 && kTileN / 64 % kClusterM == 0, "TMA moves panels of 64 columns");
  /// 16-byte pieces of a share that a thread holds.
  static constexpr int kPieces = kFragments * kShare / 8;

  using Core = ladder::WgmmaCore<kTile.n>;
  using TileA = ladder::SwizzledTile<kTile.m, kTile.k>;
  using TileB = ladder::SwizzledTile<kTile.k, kTile.n>;
  using StagedC = ladder::SwizzledTile<64, 64>;
  static constexpr int kStagedSlots = 2;  ///< one is filled while TMA reads the other

  /// As many slots as fit beside the staging tiles, the inboxes and the barriers, up to 8.
  static constexpr int kInboxBytes = (kClusterK - 1) * kRows * kShare * int(sizeof(float));
  static constexpr int kSharedBytes = 227 * 1024, kBarrierBytes = 1024;
  static constexpr int kFreeBytes =
      kSharedBytes - kBarrierBytes - kWarpgroups * (kStagedSlots * int(sizeof(StagedC)) + kInboxBytes);
  static constexpr int kSlotsThatFit = kFreeBytes / int(sizeof(TileA) + sizeof(TileB));
  static constexpr int kSlots = kSlotsThatFit < 8 ? kSlotsThatFit : 8;
};

/// Where a warpgroup receives partial sums from the blocks that split K with its own. A piece lies where the
/// thread of the same number looks for it.
template <class Shape>
struct Inbox {
  float4 pieces[Shape::kClusterK - 1][Shape::kPieces][ladder::kWarpgroup];
  ptx::Mbarrier full;         ///< all bytes from the others are here
  ptx::Mbarrier others_free;  ///< the others have read theirs
};
/// K is not split: nothing is received.
template <class Shape>
requires(Shape::kClusterK == 1) struct Inbox<Shape> {
};

/// The ring, and a staging tile with its pipeline and an inbox for each compute warpgroup.
template <class Shape>
struct SharedStorage {
  typename Shape::TileA a[Shape::kSlots];
  typename Shape::TileB b[Shape::kSlots];
  typename Shape::StagedC c[Shape::kWarpgroups][Shape::kStagedSlots];
  ladder::Pipeline<Shape::kSlots> pipe_lc;
  ladder::Pipeline<Shape::kStagedSlots> pipe_cs[Shape::kWarpgroups];
  Inbox<Shape> inbox[Shape::kWarpgroups];
};

struct TensorMaps {
  CUtensorMap a, b, c;
};

/// What a block does of its cluster's work. Ranks run down the rows of C first.
template <class Shape>
struct Part {
  int m, k;                    ///< which of the kClusterM, of the kClusterK blocks this is
  int first_step, after_step;  ///< its K steps

  __device__ __forceinline__ explicit Part(int k_steps) {
    const int rank = static_cast<int>(ptx::cluster_block_rank());
    m = rank % Shape::kClusterM, k = rank / Shape::kClusterM;
    first_step = k_steps * k / Shape::kClusterK, after_step = k_steps * (k + 1) / Shape::kClusterK;
  }
  /// The rank of another block of the same k (same m).
  __device__ __forceinline__ static constexpr uint32_t rank(int m, int k) { return m + Shape::kClusterM * k; }
  /// The block's first row and column in C, for a tile of the cluster.
  __device__ __forceinline__ int row(ladder::TileIndex tile) const {
    return (tile.row * Shape::kClusterM + m) * Shape::kTile.m;
  }
  __device__ __forceinline__ int column(ladder::TileIndex tile) const { return tile.column * Shape::kTile.n; }
};

/// One thread keeps the ring full. It waits until its slot is free in all blocks that it multicasts to, and
/// it expects what all of them send here.
template <class Shape>
__device__ __forceinline__ void load_tiles(SharedStorage<Shape>& smem, const TensorMaps& maps,
                                           const ladder::TileWalk& walk, const Part<Shape>& part,
                                           bool turns) {
  constexpr int kPanels = Shape::kTile.n / 64 / Shape::kClusterM;
  constexpr uint32_t kSharers = (1u << Shape::kClusterM) - 1;
  ptx::tma_prefetch(&maps.a);
  ptx::tma_prefetch(&maps.b);
  ptx::wait_for_grid_before();  // which may have written A and B, and may be reading what C will be
  ladder::Producer<Shape::kSlots> pipe(smem.pipe_lc);
  bool backwards = false;
  for (int index = walk.first(); index < walk.end(); index += walk.step(), backwards ^= turns) {
    const auto tile = walk.at(index);
    for (int step = part.first_step; step < part.after_step; ++step) {
      const int slot = pipe.producer_acquire();
      const int k = (backwards ? part.first_step + part.after_step - 1 - step : step) * Shape::kTile.k;
      pipe.expect_bytes(sizeof(smem.a[slot]) + sizeof(smem.b[slot]));
      ptx::tma_load(&smem.a[slot], &maps.a, k, part.row(tile), pipe.barrier());
#pragma unroll
      for (int i = 0; i < kPanels; ++i) {
        const int panel = part.m * kPanels + i, column = part.column(tile) + 64 * panel;
        if constexpr (Shape::kClusterM == 1)
          ptx::tma_load(&smem.b[slot].panels[panel], &maps.b, column, k, pipe.barrier());
        else
          ptx::tma_load_multicast(&smem.b[slot].panels[panel], &maps.b, column, k, pipe.barrier(),
                                  static_cast<uint16_t>(kSharers << part.rank(0, part.k)));
      }
      pipe.producer_commit_bytes();
    }
  }
}

/// A warpgroup that has read a slot says so in all blocks that fill it: one thread for each.
template <class Shape>
__device__ __forceinline__ void release(ladder::Consumer<Shape::kSlots>& pipe, const Part<Shape>& part) {
  const int thread = threadIdx.x % ladder::kWarpgroup;
  if constexpr (Shape::kClusterM == 1)
    pipe.consumer_release(thread == 0);
  else
    pipe.consumer_release_in(part.rank(thread, part.k), thread < Shape::kClusterM);
}

/// Blocks that split K meet: each sends every other block the partial sums of that block's share of the
/// columns, and adds what it receives to its own share, which ends up in the first registers of each core.
template <class Shape>
__device__ __forceinline__ void sum_shares(Inbox<Shape>& inbox,
                                           typename Shape::Core (&core)[Shape::kFragments],
                                           const Part<Shape>& part, uint32_t parity) {
  constexpr int kShareFloats = Shape::kShare / 2, kPieces = kShareFloats / 4;  // of a fragment
  const int thread = threadIdx.x % ladder::kWarpgroup;
  if (thread == 0) ptx::mbarrier_arrive_expect_bytes(&inbox.full, sizeof(inbox.pieces));
  ptx::mbarrier_wait_cluster(&inbox.others_free, parity ^ 1);
#pragma unroll
  for (int owner = 0; owner < Shape::kClusterK; ++owner) {  // unrolled: registers have no addresses
    if (owner == part.k) continue;
    const int sender = part.k < owner ? part.k : part.k - 1;  // my place among those who send to the owner
#pragma unroll
    for (int i = 0; i < Shape::kPieces; ++i) {
      const float* const d = &core[i / kPieces].d[owner * kShareFloats + i % kPieces * 4];
      ptx::store_async(&inbox.pieces[sender][i][thread], part.rank(part.m, owner),
                       make_float4(d[0], d[1], d[2], d[3]), &inbox.full);
    }
  }
  ptx::mbarrier_wait_cluster(&inbox.full, parity);
#pragma unroll
  for (int i = 0; i < Shape::kPieces; ++i) {
    float(&d)[Shape::kTile.n / 2] = core[i / kPieces].d;
    const int first = i % kPieces * 4;
    float4 sum = {d[first], d[first + 1], d[first + 2], d[first + 3]};
#pragma unroll
    for (int owner = 1; owner < Shape::kClusterK; ++owner) {
      const float* const share = &d[owner * kShareFloats + first];
      const float4 mine = {share[0], share[1], share[2], share[3]};
      if (owner == part.k) sum = mine;
    }
#pragma unroll
    for (int sender = 0; sender < Shape::kClusterK - 1; ++sender) {
      const float4 received = inbox.pieces[sender][i][thread];
      sum.x += received.x, sum.y += received.y, sum.z += received.z, sum.w += received.w;
    }
    d[first] = sum.x, d[first + 1] = sum.y, d[first + 2] = sum.z, d[first + 3] = sum.w;
  }
  __syncwarp();  // all lanes have read: one says so to each of the others
  const int lane = ladder::lane_index();
  if (lane < Shape::kClusterK && lane != part.k)
    ptx::mbarrier_arrive_remote_release(&inbox.others_free, part.rank(part.m, lane));
}

/// Each warpgroup multiplies its rows, meets the blocks that split K with its own, and hands its share of the
/// tile to its storer.
template <class Shape>
__device__ __forceinline__ void compute_tiles(SharedStorage<Shape>& smem, const ladder::TileWalk& walk,
                                              const Part<Shape>& part) {
  const int me = ladder::warpgroup_index();
  ladder::Consumer<Shape::kSlots> loaded(smem.pipe_lc);
  ladder::Producer<Shape::kStagedSlots> finished(smem.pipe_cs[me]);
  uint32_t parity = 0;
  for (int index = walk.first(); index < walk.end(); index += walk.step(), parity ^= 1) {
    typename Shape::Core core[Shape::kFragments];
    for (int step = part.first_step; step < part.after_step; ++step) {
      const int slot = loaded.consumer_wait();
#pragma unroll
      for (int f = 0; f < Shape::kFragments; ++f)
        core[f].start(smem.a[slot], Shape::kRows * me + 64 * f, smem.b[slot], step == part.first_step);
      core[0].template finish<Shape::kFragments>();  // the step before this one: its slot may be filled again
      if (step > part.first_step) release(loaded, part);
    }
#pragma unroll
    for (auto& fragment : core) fragment.template finish<0>();
    release(loaded, part);

    if constexpr (Shape::kClusterK > 1) sum_shares<Shape>(smem.inbox[me], core, part, parity);
#pragma unroll
    for (int f = 0; f < Shape::kFragments; ++f)
      ladder::unrolled<Shape::kShare / 64>([&](auto panel) {
        const int slot = finished.producer_acquire();  // waits until the storer has read what was there
        ladder::stage_fragment<64 * decltype(panel)::value>(core[f].d, smem.c[me][slot], 0);
        ptx::fence_proxy_async();  // TMA reads what these threads have stored
        finished.producer_commit();
      });
  }
}

/// One thread sends what warpgroup `whose` has staged to global memory.
template <class Shape>
__device__ __forceinline__ void store_tiles(SharedStorage<Shape>& smem, const TensorMaps& maps,
                                            const ladder::TileWalk& walk, const Part<Shape>& part,
                                            int whose) {
  ladder::Consumer<Shape::kStagedSlots> pipe(smem.pipe_cs[whose]);
  for (int index = walk.first(); index < walk.end(); index += walk.step()) {
    const auto tile = walk.at(index);
    const int first_row = part.row(tile) + Shape::kRows * whose;
    const int first_column = part.column(tile) + Shape::kShare * part.k;
    for (int row = 0; row < Shape::kRows; row += 64) {
      for (int column = 0; column < Shape::kShare; column += 64) {
        const int slot = pipe.consumer_wait();
        ptx::tma_store(&maps.c, &smem.c[whose][slot], first_column + column, first_row + row);
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
        pipe.consumer_release();
      }
    }
  }
  ptx::tma_store_wait<0>();
}

/// Persistent clusters: each walks over its share of the tiles of C. n and k are multiples of 8, and there
/// are at least kClusterK K steps.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    gemm(const __grid_constant__ TensorMaps maps, const ladder::TileWalk walk, const int k_steps,
         const bool turns) {
  auto& smem = ladder::shared_storage<SharedStorage<Shape>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init("loaded", "free", 1, Shape::kWarpgroups * Shape::kClusterM);
    for (auto& pipe_cs : smem.pipe_cs) pipe_cs.init("finished", "stored", ladder::kWarpgroup, 1);
    if constexpr (Shape::kClusterK > 1) {
      for (auto& inbox : smem.inbox) {
        ptx::mbarrier_init(&inbox.full, 1);
        ptx::mbarrier_init(&inbox.others_free, (Shape::kClusterK - 1) * ladder::kWarpgroup / ladder::kWarp);
        ptx::mbarrier_name(&inbox.full, "inbox full", -1);
        ptx::mbarrier_name(&inbox.others_free, "others free", -1);
      }
    }
    ptx::fence_mbarrier_init();
  }
  if constexpr (Shape::kBlocks > 1)
    ptx::cluster_sync();
  else
    __syncthreads();  // no block sends before the barriers of all are there
  ptx::let_next_grid_begin();

  const Part<Shape> part(k_steps);
  const int warp = threadIdx.x / ladder::kWarp;
  if (warp < Shape::kLoaderWarp) {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_inc<Shape::kComputeRegisters>();
    compute_tiles(smem, walk, part);
  } else {
    if constexpr (Shape::kMovesRegisters) ptx::setmaxnreg_dec<Shape::kMoverRegisters>();
    if (ladder::lane_index() == 0) {
      if (warp == Shape::kLoaderWarp) load_tiles(smem, maps, walk, part, turns);
      if (warp >= Shape::kStorerWarp && warp < Shape::kStorerWarp + Shape::kWarpgroups)
        store_tiles(smem, maps, walk, part, warp - Shape::kStorerWarp);
    }
  }
  if constexpr (Shape::kBlocks > 1)
    ptx::cluster_sync();  // no block leaves while another may still reach its shared memory
}

/// As many clusters as the GPU holds at one time, or as there are tiles for.
template <class Shape>
void launch_gemm(const Gemm& p, int group, bool begins_early, bool turns, cudaStream_t stream) {
  constexpr ladder::TileShape kTile = Shape::kTile;
  const TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, kTile.k),
                           ladder::make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           ladder::make_tensor_map(p.c, p.m, p.n, 64, 64)};
  const ladder::TileWalk walk{ladder::tiles_over(p.m, kTile.m * Shape::kClusterM),
                              ladder::tiles_over(p.n, kTile.n), group, Shape::kBlocks};
  const int tiles = walk.tile_rows * walk.tile_columns;
  const auto kernel = gemm<Shape>;
  const int resident =
      ladder::resident_clusters(kernel, Shape::kThreads, sizeof(SharedStorage<Shape>), Shape::kBlocks);
  ladder::launch(kernel,
                 {.name = "06_clusters_dsmem",
                  .grid = dim3((tiles < resident ? tiles : resident) * Shape::kBlocks),
                  .block = dim3(Shape::kThreads),
                  .shared_bytes = sizeof(SharedStorage<Shape>),
                  .cluster = dim3(Shape::kBlocks),
                  .stream = stream,
                  .begins_early = begins_early},
                 maps, walk, ladder::tiles_over(p.k, kTile.k), turns);
}

/// The lesson, its knobs and its rungs.
const ladder::Lesson& lesson();

}  // namespace lesson06
