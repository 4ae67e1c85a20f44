/// @file
/// From a core's fragment to a swizzled tile, which TMA then stores.
#pragma once
#include "common/device/pack_bf16.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder {

/// Writes columns first .. first + kColumns - 1 of a warpgroup's 64 rows, as bf16, to rows `row` .. row +
/// 63 of the staging tile. stmatrix takes four 8x8 matrices at a time: 16 rows and 16 columns of a warp.
template <int kCount, int kRows, int kColumns>
__device__ __forceinline__ void stage_fragment(const float (&d)[kCount], int first,
                                               SwizzledTile<kRows, kColumns>& staging, int row) {
  const int lane = lane_index();
  const int my_row = row + 16 * warp_in_warpgroup() + lane % 16, my_column = lane / 16 * 8;
#pragma unroll
  for (int column = 0; column < kColumns; column += 16) {
    const float* const group = &d[(first + column) / 2];
    const uint32_t packed[4] = {pack_bf16(group[0], group[1]), pack_bf16(group[2], group[3]),
                                pack_bf16(group[4], group[5]), pack_bf16(group[6], group[7])};
    ptx::stmatrix_x4(staging.chunk(my_row, column + my_column), packed);
  }
}

}  // namespace ladder
