/// @file
/// From a core's fragment to a swizzled tile in shared memory, which TMA then stores.
#pragma once
#include "common/device/epilogue_functors.cuh"
#include "common/device/pack_bf16.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder {

/// Writes columns kFirst .. kFirst + kColumns - 1 of a warpgroup's 64 rows, as bf16, to rows `row` .. row +
/// 63 of the staging tile. stmatrix takes four 8x8 matrices at a time: 16 rows and 16 columns of a warp.
/// @param epilogue applied to each accumulator before it is rounded; see epilogue_functors.cuh
/// @param first_column the column of C that d[0] belongs to
template <int kFirst, int kCount, int kRows, int kColumns, class Epilogue = Identity>
__device__ __forceinline__ void stage_fragment(const float (&d)[kCount],
                                               SwizzledTile<kRows, kColumns>& staging, int row,
                                               const Epilogue& epilogue = {}, int first_column = 0) {
  const int lane = lane_index();
  const int my_row = row + 16 * warp_in_warpgroup() + lane % 16, my_column = lane / 16 * 8;
  const int my_bias = first_column + kFirst + lane % 4 * 2;
#pragma unroll
  for (int column = 0; column < kColumns; column += 16) {
    const float* const group = &d[(kFirst + column) / 2];
    const float2 left = epilogue.bias_pair(my_bias + column),
                 right = epilogue.bias_pair(my_bias + column + 8);
    const auto pack = [&](int i, float2 bias) {
      return pack_bf16(epilogue(group[i], bias.x), epilogue(group[i + 1], bias.y));
    };
    const uint32_t packed[4] = {pack(0, left), pack(2, left), pack(4, right), pack(6, right)};
    ptx::stmatrix_x4(staging.chunk(my_row, column + my_column), packed);
  }
}

}  // namespace ladder
