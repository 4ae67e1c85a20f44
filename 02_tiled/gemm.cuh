/// @file
/// Lesson 02: a block computes a tile of C from tiles of A and B in shared memory.
///
/// Added since 01: every element that a block loads is used 128 times instead of once, and the products are
/// done by tensor cores (or, with --core fma, by CUDA cores: tiling and tensor cores are two gains). Loading
/// and computing take turns, with a barrier between them.
#pragma once
#include "common/cuda/launch.cuh"
#include "common/device/cores.cuh"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/host/problem/lesson.hpp"

namespace lesson02 {
using ladder::Gemm;

constexpr ladder::TileShape kTile{128, 128, 64};
constexpr int kWarpgroups = kTile.m / 64;  ///< each multiplies 64 rows of A
constexpr int kThreads = kWarpgroups * ladder::kWarpgroup;
/// While one block loads, another one may compute, if the registers of both fit.
template <class Core, bool kAligned>
constexpr int kBlocksPerSm = kAligned ? Core::kBlocksPerSm : 1;

using TileA = ladder::SwizzledTile<kTile.m, kTile.k>;
using TileB = ladder::SwizzledTile<kTile.k, kTile.n>;

struct SharedStorage {
  TileA a;
  TileB b;
};

/// A thread's chunks of a tile, on their way from global to shared memory.
template <class Tile>
struct Staged {
  using Share = ladder::TileShare<Tile, kThreads>;
  uint4 chunks[Share::kChunks];

  /// Global memory to registers. What lies outside the matrix is zero.
  /// kAligned: rows start at multiples of 16 bytes, so that a chunk is one load, and is never cut by the
  /// edge.
  template <bool kAligned>
  __device__ __forceinline__ void load(const Share& share) {
    share.for_each([&](int i, const __nv_bfloat16* source, int valid) {
      if (kAligned) {
        chunks[i] = valid > 0 ? *reinterpret_cast<const uint4*>(source) : make_uint4(0, 0, 0, 0);
      } else {
        alignas(16) __nv_bfloat16 elements[Tile::kChunk];
#pragma unroll
        for (int e = 0; e < Tile::kChunk; ++e) elements[e] = e < valid ? source[e] : __float2bfloat16(0);
        chunks[i] = *reinterpret_cast<const uint4*>(elements);
      }
    });
  }

  /// Registers to shared memory.
  __device__ __forceinline__ void store(const Share& share, Tile& tile) const {
    __nv_bfloat16* const to = share.destination(tile);
#pragma unroll
    for (int i = 0; i < Share::kChunks; ++i)
      *reinterpret_cast<uint4*>(to + i * Share::kDestinationStep) = chunks[i];
  }
};

/// Each block computes one tile of C. kAligned: n and k are multiples of 8.
template <class Core, bool kAligned>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm<Core, kAligned>) gemm(const Gemm p) {
  auto& smem = ladder::shared_storage<SharedStorage>();
  const auto tile =
      ladder::grouped_tile(blockIdx.x, ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;
  const int k_tiles = ladder::tiles_over(p.k, kTile.k);

  typename Staged<TileA>::Share a_share(p.a, p.m, p.k, first_row, 0);
  typename Staged<TileB>::Share b_share(p.b, p.k, p.n, 0, first_column);
  Core core;
  const int my_rows = 64 * ladder::warpgroup_index();

  // [k_loop]
  for (int kt = 0; kt < k_tiles; ++kt, a_share.next_right(), b_share.next_down()) {
    Staged<TileA> a;
    Staged<TileB> b;
    a.template load<kAligned>(a_share);
    b.template load<kAligned>(b_share);
    a.store(a_share, smem.a);
    b.store(b_share, smem.b);

    core.publish();
    __syncthreads();  // the tiles are complete
    core.start(smem.a, my_rows, smem.b, kt == 0);
    core.template finish<0>();
    __syncthreads();  // everyone has read them: they may be overwritten
  }
  // [k_loop]
  ladder::store_fragment(core.d, p.c, first_row + my_rows, first_column, p.m, p.n);
}

/// One block for each tile of C.
template <class Core, bool kAligned>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const int tiles = ladder::tiles_over(p.m, kTile.m) * ladder::tiles_over(p.n, kTile.n);
  ladder::launch(gemm<Core, kAligned>,
                 {.name = "02_tiled",
                  .grid = dim3(tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage),
                  .stream = stream},
                 p);
}

/// The lesson, its knobs and its rungs.
const ladder::Lesson& lesson();

}  // namespace lesson02
