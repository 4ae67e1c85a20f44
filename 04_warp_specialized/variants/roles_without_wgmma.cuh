/// @file
/// Lessons 04 and 05 for GPUs without wgmma, from sm_80 on: the same roles, pipeline and walk, but mma.sync
/// multiplies. With one slot this is lesson 04's kernel, with a ring of them lesson 05's.
///
/// The loader is a type. From sm_90 on it is the lessons' own, one thread that asks TMA. Before, it is two or
/// four warps with cp.async, 16 bytes a lane: TMA counts bytes at the slot's barrier, cp.async counts
/// threads, each of which arrives when its copies have landed.
///
/// Registers decide the rest. Each of an SM's four schedulers has 512 per lane, which its warps share, and
/// without setmaxnreg all warps get equally many: 168 where a scheduler has three, 96 where it has five. A
/// storer beside the copying loader would be a warp too many, so compute stores its sums itself.
#pragma once
#include <algorithm>
#include <string>
#include <type_traits>

#include "common/cuda/launch.cuh"
#include "common/cuda/persistent_grid.hpp"
#include "common/cuda/tensor_map.hpp"
#include "common/device/epilogue.cuh"
#include "common/device/mma_sync_core.cuh"
#include "common/device/pipeline.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_walk.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/elect.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"

namespace lesson04::without_wgmma {
using namespace ladder;

constexpr int kComputeWarps = 8, kComputeThreads = kComputeWarps * kWarp;

/// The tile of C is 128 x kTileN, a slot holds kTileK columns of A and rows of B, and an SM kBlocks blocks.
template <int kTileN, int kTileK, int kSlotCount, int kBlocks>
struct Shape {
  static constexpr TileShape kTile{128, kTileN, kTileK};
  static constexpr int kSlots = kSlotCount, kBlocksPerSm = kBlocks;
  static constexpr int kCopyWarps = kBlocks == 1 ? 4 : 2;  ///< that load, where there is no TMA
  using Core = MmaSyncCore<kTileN, 64, kTileN / 4>;        ///< four warps beside each other
  static_assert(kTile.m / Core::kRows * kWarpsPerWarpgroup == kComputeWarps);
};
/// Lesson 04: one deep slot, and the tile and the two blocks of lesson 02. Where one block waits, the
/// other multiplies. Ten warps are five a scheduler, and leave a compute warp room for 64 x 32 sums.
using OneSlot = Shape<128, 128, 1, 2>;
/// Lesson 05: the ring hides the loads, so that one block is enough. Its three warps a scheduler leave room
/// for 64 x 48 sums, and each fragment of A is used 1.5 times as often.
template <int kSlots>
using Ring = Shape<192, 64, kSlots, 1>;

/// The ring.
template <class Shape>
struct SharedStorage {
  SwizzledTile<Shape::kTile.m, Shape::kTile.k> a[Shape::kSlots];
  SwizzledTile<Shape::kTile.k, Shape::kTile.n> b[Shape::kSlots];
  Pipeline<Shape::kSlots> pipe_lc;  ///< from the loader to compute
};

/// One thread asks TMA, as in the lessons.
struct TmaLoader {
  static constexpr int kWarps = 1, kArrivals = 1;  ///< arrivals that fill a slot

  /// Fills slot after slot with the steps of every tile.
  template <class Shape>
  __device__ __forceinline__ static void load_tiles(SharedStorage<Shape>& smem, const TensorMaps& maps,
                                                    const Gemm&, const TileWalk& walk, int k_steps) {
    if (!ptx::elect_one()) return;
    constexpr TileShape kTile = Shape::kTile;
    Producer pipe_lc(smem.pipe_lc);
    for (const auto tile : walk) {
      const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
      for (int step = 0; step < k_steps; ++step) {
        const int slot = pipe_lc.producer_acquire();  // waits until all compute warps have released it
        ptx::Mbarrier* const full = pipe_lc.expect_bytes(sizeof(smem.a[0]) + sizeof(smem.b[0]));
        for (int k = 0; k < kTile.k; k += 64)  // TMA moves panels of 64 columns
          ptx::tma_load(&smem.a[slot].panels[k / 64], &maps.a, step * kTile.k + k, first_row, full);
        for (int column = 0; column < kTile.n; column += 64)
          ptx::tma_load(&smem.b[slot].panels[column / 64], &maps.b, first_column + column, step * kTile.k,
                        full);
        pipe_lc.producer_commit_bytes();
      }
    }
  }
};

/// Warps copy. Every thread copies, waits and arrives for itself.
template <int kCopyWarps>
struct CopyLoader {
  static constexpr int kWarps = kCopyWarps, kArrivals = kWarps * kWarp;
  static constexpr int kChunk = 8, kPanel = 64;  ///< elements in 16 bytes, and in a row of a panel
  static constexpr int kThreadsPerRow = kPanel / kChunk, kRowStep = kArrivals / kThreadsPerRow;
  static_assert(kRowStep % 8 == 0, "all rows of a thread are swizzled alike");

  /// This thread's chunks of a tile. Eight neighbours copy a row of a panel, a whole line of 128 bytes.
  template <int kRows, int kColumns>
  class Share {
   public:
    /// The first tile starts at (first_row, first_column) of the matrix [rows, columns].
    __device__ __forceinline__ Share(const __nv_bfloat16* matrix, int rows, int columns, int first_row,
                                     int first_column)
        : rows_left_(rows - first_row - my_row()),
          columns_left_(columns - first_column - my_column()),
          pitch_(columns),
          first_(matrix + static_cast<size_t>(first_row + my_row()) * columns + first_column + my_column()) {}

    /// Starts to copy them. Zeros outside the matrix are part of the copies, too: the thread's arrival speaks
    /// for its copies and not for ordinary stores.
    __device__ __forceinline__ void copy(SwizzledTile<kRows, kColumns>& tile) const {
#pragma unroll
      for (int panel = 0; panel < kColumns; panel += kPanel) {
        const int rows_left = panel < columns_left_ ? rows_left_ : 0;
        const __nv_bfloat16* source = first_ + panel;
        __nv_bfloat16* const destination = tile.chunk(my_row(), panel + my_column());
#pragma unroll
        for (int i = 0; i < kRows; i += kRowStep) {
          ptx::cp_async_16(destination + i * kPanel, source, i < rows_left ? 16 : 0);
          source += static_cast<size_t>(kRowStep) * pitch_;
        }
      }
    }
    /// Goes on to the tile to the right.
    __device__ __forceinline__ void next_right() {
      columns_left_ -= kColumns;
      first_ += kColumns;
    }
    /// Goes on to the tile below.
    __device__ __forceinline__ void next_down() {
      rows_left_ -= kRows;
      first_ += static_cast<size_t>(kRows) * pitch_;
    }

   private:
    __device__ __forceinline__ static int my_row() { return threadIdx.x % kArrivals / kThreadsPerRow; }
    __device__ __forceinline__ static int my_column() { return threadIdx.x % kThreadsPerRow * kChunk; }

    int rows_left_, columns_left_;  // of the matrix, from the first chunk on
    int pitch_;                     // elements from a row of the matrix to the next
    const __nv_bfloat16* first_;    // the first chunk
  };

  // [load_tiles]
  /// Each thread copies its chunks of slot after slot, for the steps of every tile.
  template <class Shape>
  __device__ __forceinline__ static void load_tiles(SharedStorage<Shape>& smem, const TensorMaps&,
                                                    const Gemm& p, const TileWalk& walk, int k_steps) {
    constexpr TileShape kTile = Shape::kTile;
    Producer pipe_lc(smem.pipe_lc);
    for (const auto tile : walk) {
      Share<kTile.m, kTile.k> a_share(p.a, p.m, p.k, tile.row * kTile.m, 0);
      Share<kTile.k, kTile.n> b_share(p.b, p.k, p.n, 0, tile.column * kTile.n);
      for (int step = 0; step < k_steps; ++step) {
        const int slot = pipe_lc.producer_acquire();  // waits until all compute warps have released it
        a_share.copy(smem.a[slot]);
        b_share.copy(smem.b[slot]);
        // Arrives at the slot's barrier when this thread's copies have landed.
        ptx::cp_async_mbarrier_arrive_noinc(pipe_lc.full_barrier());
        pipe_lc.producer_commit_bytes();
        a_share.next_right();
        b_share.next_down();
      }
    }
  }
  // [load_tiles]
};

/// Each warp multiplies its rows, and stores its sums from registers.
template <class Shape>
__device__ __forceinline__ void compute_tiles(SharedStorage<Shape>& smem, const Gemm& p, const TileWalk& walk,
                                              int k_steps) {
  using Core = typename Shape::Core;
  const int my_rows = Core::kRows * warpgroup_index();
  Consumer pipe_lc(smem.pipe_lc);
  for (const auto tile : walk) {
    Core core;
    clear(core.d);
    // [k_loop]
    for (int step = 0; step < k_steps; ++step) {
      const int slot = pipe_lc.consumer_wait();
      core.start(smem.a[slot], my_rows, smem.b[slot], false);
      core.finish();
      // Only the last products wait for the last ldmatrix, and ptxas moves the arrival in front of them.
      // Without this fence TMA overwrote rows that ldmatrix had not read, in one of 10,000 elements.
      ptx::fence_proxy_async();
      __syncwarp();  // all lanes have read: one may arrive for all
      pipe_lc.consumer_release(lane_index() == 0);
    }
    // [k_loop]
    store_sums<Core>(core.d, p.c, tile.row * Shape::kTile.m + my_rows, tile.column * Shape::kTile.n, p.m,
                     p.n);
  }
}

template <class Loader>
constexpr int kThreads = (kComputeWarps + Loader::kWarps) * kWarp;

/// Persistent blocks: each walks over its share of the tiles of C. n and k are multiples of 8.
template <class Loader, class Shape>
__global__ void __launch_bounds__(kThreads<Loader>, Shape::kBlocksPerSm)
    gemm(const __grid_constant__ TensorMaps maps, const Gemm p, const TileWalk walk, const int k_steps) {
  auto& smem = shared_storage<SharedStorage<Shape>>();
  if (threadIdx.x == 0) {
    smem.pipe_lc.init(Loader::kArrivals, kComputeWarps);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x < kComputeThreads)
    compute_tiles(smem, p, walk, k_steps);
  else
    Loader::load_tiles(smem, maps, p, walk, k_steps);
}

/// Calls visit(loader) for the shape's loader of that name, "tma" or "cp_async".
template <class Shape, class Visit>
void visit_loader(const std::string& name, const Visit& visit) {
  name == "tma" ? visit(TmaLoader()) : visit(CopyLoader<Shape::kCopyWarps>());
}

/// How many slots of lesson 05's ring, up to `most`, a block has room for in so many bytes of shared memory;
/// at least 2.
constexpr int slots_that_fit(int most, size_t bytes) {
  constexpr size_t kTwo = sizeof(SharedStorage<Ring<2>>), kSlot = sizeof(SharedStorage<Ring<3>>) - kTwo;
  return bytes <= kTwo ? 2 : std::min(most, 2 + static_cast<int>((bytes - kTwo) / kSlot));
}

/// One block for each tile of C, but no more blocks than the GPU holds at one time.
template <class Loader, class Shape>
void launch_gemm(const Gemm& p, int group, cudaStream_t stream) {
  constexpr TileShape kTile = Shape::kTile;
  using Smem = SharedStorage<Shape>;
  TensorMaps maps{};
  if constexpr (std::is_same_v<Loader, TmaLoader>)
    maps = {make_tensor_map(p.a, p.m, p.k, kTile.m, 64), make_tensor_map(p.b, p.k, p.n, kTile.k, 64)};
  const TileWalk walk{tiles_over(p.m, kTile.m), tiles_over(p.n, kTile.n), group};
  const auto kernel = gemm<Loader, Shape>;
  ladder::launch(kernel,
                 {.name = "roles_without_wgmma",
                  .grid = persistent_grid<Smem>(kernel, kThreads<Loader>, walk.tiles()),
                  .block = dim3(kThreads<Loader>),
                  .shared_bytes = sizeof(Smem),
                  .stream = stream},
                 maps, p, walk, tiles_over(p.k, kTile.k));
}

}  // namespace lesson04::without_wgmma
