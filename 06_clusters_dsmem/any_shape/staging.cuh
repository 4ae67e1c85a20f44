/// @file
/// How a tile's sums reach C: piece by piece they are rounded, staged in shared memory and stored from there.
#pragma once
#include "06_clusters_dsmem/any_shape/shape.cuh"
#include "common/device/epilogue_functors.cuh"
#include "common/device/pack_bf16.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/stmatrix_trans.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tma_3d.cuh"

namespace lesson06::any_shape {

/// Writes the warpgroup's rows of a piece, whose columns are those from `first` on that this block stores.
template <class Shape, class Epilogue, int kCount>
__device__ __forceinline__ void stage_rows(const float (&d)[kCount], int first, auto& smem,
                                           const Block<Shape>& block, const TileSteps& tile,
                                           const Epilogue& epilogue) {
  const int lane = lane_index(), first_column = tile.column * Shape::kTile.n + block.first_column + first;
  const int my_row = 64 * warpgroup_index() + 16 * warp_in_warpgroup() + lane % 16, my_column = lane / 16 * 8;
#pragma unroll  // stmatrix takes 16 columns at a time; the last eight may be alone
  for (int column = 0; column < Shape::kStagedN; column += 16) {
    uint32_t packed[4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (first + column + 8 * half >= Shape::kOwnN) continue;
      const float2 bias = epilogue.bias_pair(first_column + column + 8 * half + lane % 4 * 2);
      const float* const sums = &d[(first + column + 8 * half) / 2];
      packed[2 * half] = pack_bf16(epilogue(sums[0], bias.x), epilogue(sums[1], bias.y));
      packed[2 * half + 1] = pack_bf16(epilogue(sums[2], bias.x), epilogue(sums[3], bias.y));
    }
    if (first + column < Shape::kOwnN) ptx::stmatrix_x4(smem.c.chunk(my_row, column + my_column), packed);
  }
}

/// The same where the operands are swapped: d holds sums of C transposed, and the warpgroup writes 64 columns
/// of C and all rows of the piece, which stmatrix transposes back.
template <class Shape, class Epilogue, int kCount>
__device__ __forceinline__ void stage_columns(const float (&d)[kCount], int first, auto& smem,
                                              const Block<Shape>&, const TileSteps& tile,
                                              const Epilogue& epilogue) {
  const int lane = lane_index(), warp_column = 64 * warpgroup_index() + 16 * warp_in_warpgroup();
  // Of each eight rows of C, lane t passes sums of the columns t / 4 and t / 4 + 8 of its warp.
  const auto bias_of = [&](int column) {
    const float2 pair = epilogue.bias_pair(column & ~1);
    return column % 2 ? pair.y : pair.x;
  };
  const int column = tile.row * Shape::kTile.m + warp_column + lane / 4;
  const float bias = bias_of(column), other_bias = bias_of(column + 8);
  const int my_row = lane / 16 * 8 + lane % 8, my_column = warp_column + lane / 8 % 2 * 8;
#pragma unroll  // as above, with rows of C
  for (int row = 0; row < Shape::kStagedN; row += 16) {
    uint32_t packed[4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (first + row + 8 * half >= Shape::kOwnN) continue;
      const float* const sums = &d[(first + row + 8 * half) / 2];
      packed[2 * half] = pack_bf16(epilogue(sums[0], bias), epilogue(sums[1], bias));
      packed[2 * half + 1] = pack_bf16(epilogue(sums[2], other_bias), epilogue(sums[3], other_bias));
    }
    if (first + row < Shape::kOwnN) ptx::stmatrix_x4_trans(smem.c.chunk(row + my_row, my_column), packed);
  }
}

/// Stages the warpgroup's part of a piece. Where another block completes the tile, the storer learns that
/// there is nothing to store.
template <class Shape, class Epilogue, int kCount>
__device__ __forceinline__ void stage(const float (&d)[kCount], int first, auto& smem,
                                      const Block<Shape>& block, const TileSteps& tile,
                                      const Ending<Epilogue>& ending, bool complete) {
  if (Shape::kStreamK && threadIdx.x == 0) smem.complete = complete;
  if (!complete) return;
  if constexpr (Shape::kSwaps)
    stage_columns(d, first, smem, block, tile, ending.epilogue);
  else
    stage_rows(d, first, smem, block, tile, ending.epilogue);
}

/// Sends a staged panel, whose first column is the `column`-th that this block stores, to C. TMA leaves out
/// what lies to the right of C, but knows nothing of the tile's right edge, which the last panel may cross.
/// There the map of groups cuts: all its groups lie in C, so the last one, where C ends, takes the other map.
template <class Shape>
__device__ __forceinline__ void store_panel(const Block<Shape>& block, const auto& panel, const Maps& maps,
                                            const TileSteps& tile, int column, int columns_of_c) {
  const int first = tile.column * Shape::kTile.n + block.first_column, row = tile.row * Shape::kTile.m;
  if (Shape::kRagged && first + Shape::kOwnN <= columns_of_c)
    ptx::tma_store_3d(&maps.c_end, &panel, column, row, first / Shape::kOwnN);
  else
    ptx::tma_store(&maps.c, &panel, first + column, row);
}

/// Sends a staged piece, whose columns are those from `first` on that this block stores, to C, unless another
/// block completes the tile. With swapped operands these are rows of C; the last box has only as many as the
/// tile has left.
template <class Shape>
__device__ __forceinline__ void store_piece(const SharedStorage<Shape>& smem, const Block<Shape>& block,
                                            const Maps& maps, const TileSteps& tile, int first,
                                            const Work& work) {
  const auto is_complete = [&] { return !Shape::kStreamK || smem.complete; };
  if constexpr (!Shape::kSwaps) {
    for (int column = 0; column < Shape::kStagedN && is_complete(); column += 64)
      if (first + column < Shape::kOwnN)
        store_panel(block, smem.c.panels[column / 64], maps, tile, first + column, work.columns);
  } else {
    const CUtensorMap* const map = first + Shape::kStagedN < Shape::kOwnN ? &maps.c : &maps.c_end;
    const int row = tile.column * Shape::kTile.n + block.first_column + first;
    const int left = tile.row * Shape::kTile.m;
    for (int column = 0; column < Shape::kTile.m && is_complete(); column += 64)
      if (left + column < work.rows) ptx::tma_store(map, &smem.c.panels[column / 64], left + column, row);
  }
}

}  // namespace lesson06::any_shape
