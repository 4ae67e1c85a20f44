/// @file
/// Lesson 02's second and third step: 64 outputs a thread, and then the swizzle.
///
/// Added since the shared tile: a thread keeps 8 x 8 sums in registers. For 64 products it reads 8 elements
/// of A and 8 of B from shared memory, a quarter of an element for each instead of two. The tile of a block
/// grows with it, from 32 x 32 to 128 x 128.
///
/// The two steps are one kernel, and differ in the type of its tiles: PlainTile, or ladder::SwizzledTile.
#pragma once
#include <cstdint>

#include "common/cuda/launch.cuh"
#include "common/cuda/warps.hpp"
#include "common/device/epilogue.cuh"
#include "common/device/shared_storage.cuh"
#include "common/device/tile_order.cuh"
#include "common/device/tile_shape.cuh"
#include "common/device/tile_share.cuh"
#include "common/host/problem/gemm.hpp"
#include "common/ptx/thread_ids.cuh"

namespace lesson02::register_tile {
using ladder::Gemm;

constexpr ladder::TileShape kTile{128, 128, 64};
constexpr int kSumRows = 8, kSumColumns = 8;     ///< sums of a thread
constexpr int kLanesDown = 8, kLanesAcross = 4;  ///< how a warp's lanes lie over C
constexpr int kWarpRows = kLanesDown * kSumRows, kWarpColumns = kLanesAcross * kSumColumns;
constexpr int kThreads = kTile.m / kWarpRows * (kTile.n / kWarpColumns) * ladder::kWarp;

/// A SwizzledTile without the swizzle: chunk c of a row lies at place c. Rows are 128 bytes apart, which is
/// all 32 banks, so that the same chunk of all rows lies in the same four banks.
template <int kTileRows, int kTileColumns>
struct alignas(1024) PlainTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kChunk = 8;  ///< elements in 16 bytes
  static constexpr int kChunksPerRow = kColumns / kChunk;
  static constexpr int kChunks = kRows * kChunksPerRow;

  __nv_bfloat16 panels[kColumns / 64][kRows][64];

  /// Where the chunk with this element begins.
  __device__ __forceinline__ __nv_bfloat16* chunk(int row, int column) {
    return &panels[column / 64][row][column / kChunk % 8 * kChunk];
  }
  /// The same.
  __device__ __forceinline__ const __nv_bfloat16* chunk(int row, int column) const {
    return &panels[column / 64][row][column / kChunk % 8 * kChunk];
  }
};

/// Tile is PlainTile or ladder::SwizzledTile.
template <template <int, int> class Tile>
struct SharedStorage {
  Tile<kTile.m, kTile.k> a;
  Tile<kTile.k, kTile.n> b;
};

/// A thread's chunks of a tile, from global to shared memory: one tile after the other, since there are no
/// registers for both.
template <bool kAligned, class Tile>
__device__ __forceinline__ void copy_tile(const ladder::TileShare<Tile, kThreads>& share, Tile& tile) {
  uint4 chunks[ladder::TileShare<Tile, kThreads>::kChunks];
  share.template load<kAligned>(chunks);
  share.store(chunks, tile);
}

/// sums += rows of a · columns of b. A thread has every eighth row from `row` on, so that the lanes of a warp
/// read neighbouring rows, and eight neighbouring columns from `column` on, one chunk of b.
template <class TileA, class TileB>
__device__ __forceinline__ void multiply(float (&sums)[kSumRows][kSumColumns], const TileA& a, int row,
                                         const TileB& b, int column) {
  constexpr int kDeep = 4;  // columns of a in one load of 8 bytes; 8 of them would not fit into the registers
  for (int k = 0; k < kTile.k; k += kDeep) {
    alignas(8) __nv_bfloat16 a_values[kSumRows][kDeep];
#pragma unroll
    for (int i = 0; i < kSumRows; ++i)
      *reinterpret_cast<uint2*>(a_values[i]) =
          *reinterpret_cast<const uint2*>(a.chunk(row + kLanesDown * i, k) + k % TileA::kChunk);
#pragma unroll
    for (int deep = 0; deep < kDeep; ++deep) {
      alignas(16) __nv_bfloat16 b_values[kSumColumns];
      *reinterpret_cast<uint4*>(b_values) = *reinterpret_cast<const uint4*>(b.chunk(k + deep, column));
      float b_row[kSumColumns];
#pragma unroll
      for (int j = 0; j < kSumColumns; ++j) b_row[j] = __bfloat162float(b_values[j]);
#pragma unroll
      for (int i = 0; i < kSumRows; ++i) {
        const float a_value = __bfloat162float(a_values[i][deep]);
#pragma unroll
        for (int j = 0; j < kSumColumns; ++j) sums[i][j] += a_value * b_row[j];
      }
    }
  }
}

/// Eight neighbouring sums to C, as far as they lie inside it.
template <bool kAligned>
__device__ __forceinline__ void store_row(const float (&sums)[kSumColumns], const Gemm& p, int row,
                                          int column) {
  if (row >= p.m) return;
  __nv_bfloat16* const to = p.c + static_cast<size_t>(row) * p.n + column;
  if (kAligned) {
    if (column < p.n)
      *reinterpret_cast<uint4*>(to) =
          make_uint4(ladder::pack_bf16(sums[0], sums[1]), ladder::pack_bf16(sums[2], sums[3]),
                     ladder::pack_bf16(sums[4], sums[5]), ladder::pack_bf16(sums[6], sums[7]));
  } else {
#pragma unroll
    for (int j = 0; j < kSumColumns; ++j)
      if (column + j < p.n) to[j] = __float2bfloat16(sums[j]);
  }
}

/// Each block computes one tile of C. kAligned: n and k are multiples of 8.
template <template <int, int> class Tile, bool kAligned>
__global__ void __launch_bounds__(kThreads, 2) gemm(const Gemm p) {
  auto& smem = ladder::shared_storage<SharedStorage<Tile>>();
  const auto tile =
      ladder::grouped_tile(blockIdx.x, ladder::tiles_over(p.m, kTile.m), ladder::tiles_over(p.n, kTile.n));
  const int first_row = tile.row * kTile.m, first_column = tile.column * kTile.n;

  ladder::TileShare<Tile<kTile.m, kTile.k>, kThreads> a_share(p.a, p.m, p.k, first_row, 0);
  ladder::TileShare<Tile<kTile.k, kTile.n>, kThreads> b_share(p.b, p.k, p.n, 0, first_column);
  // Where this thread's sums lie in the tile.
  const int warp = static_cast<int>(threadIdx.x) / ladder::kWarp, lane = ladder::lane_index();
  constexpr int kWarpsDown = kTile.m / kWarpRows;
  const int row = warp % kWarpsDown * kWarpRows + lane / kLanesAcross;
  const int column = warp / kWarpsDown * kWarpColumns + lane % kLanesAcross * kSumColumns;

  float sums[kSumRows][kSumColumns] = {};
  for (int k = 0; k < p.k; k += kTile.k, a_share.next_right(), b_share.next_down()) {
    copy_tile<kAligned>(a_share, smem.a);
    copy_tile<kAligned>(b_share, smem.b);
    __syncthreads();  // the tiles are complete
    multiply(sums, smem.a, row, smem.b, column);
    __syncthreads();  // everyone has read them: they may be overwritten
  }
#pragma unroll
  for (int i = 0; i < kSumRows; ++i)
    store_row<kAligned>(sums[i], p, first_row + row + kLanesDown * i, first_column + column);
}

/// One block for each tile of C.
template <template <int, int> class Tile>
void launch_gemm(const Gemm& p, cudaStream_t stream) {
  const bool aligned = p.n % 8 == 0 && p.k % 8 == 0;
  const int tiles = ladder::tiles_over(p.m, kTile.m) * ladder::tiles_over(p.n, kTile.n);
  ladder::launch(aligned ? gemm<Tile, true> : gemm<Tile, false>,
                 {.name = "02_tiled, register tile",
                  .grid = dim3(tiles),
                  .block = dim3(kThreads),
                  .shared_bytes = sizeof(SharedStorage<Tile>),
                  .stream = stream},
                 p);
}

}  // namespace lesson02::register_tile
