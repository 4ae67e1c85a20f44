/// @file
/// From a core's fragment to a swizzled tile in shared memory, which TMA then stores.
#pragma once
#include "common/device/epilogue.cuh"
#include "common/device/epilogue_functors.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/stmatrix.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder {

/// Writes columns kFirst .. kFirst + kColumns - 1 of the sums d of a Fragment, a core or another, as bf16, to
/// rows `row` .. row + Fragment::kRows - 1 of the staging tile. stmatrix takes four 8x8 matrices at a time:
/// 16 rows and 16 columns of a warp.
/// @param epilogue applied to each accumulator before it is rounded; see epilogue_functors.cuh
/// @param first_column the column of C that the tile begins with
template <class Fragment, int kFirst, int kCount, int kRows, int kColumns, class Epilogue = Identity>
__device__ __forceinline__ void stage_sums(const float (&d)[kCount], SwizzledTile<kRows, kColumns>& staging,
                                           int row, const Epilogue& epilogue = {}, int first_column = 0) {
  // Either every warp has all columns, and stages some, or a warp has a few, and stages all or none of them.
  constexpr bool kHasAll = Fragment::kStripColumns == Fragment::kColumns;
  constexpr int kBefore = kHasAll ? kFirst : 0, kStaged = kHasAll ? kColumns : Fragment::kStripColumns;
  static_assert(kHasAll || (kColumns % kStaged == 0 && kFirst % kStaged == 0));
  const int lane = lane_index();
#pragma unroll
  for (int strip = 0; strip < Fragment::kStrips; ++strip) {
    const StripOrigin origin = Fragment::origin(strip);
    const int left = origin.column + kBefore - kFirst;  // in the staging tile
    if (!kHasAll && (left < 0 || left >= kColumns)) continue;
    const float* const sums = &d[strip * (kCount / Fragment::kStrips)];
    const int my_row = row + origin.row + lane % 16, my_column = left + lane / 16 * 8;
    const int my_bias = first_column + kFirst + left + lane % 4 * 2;
#pragma unroll
    for (int column = 0; column < kStaged; column += 16) {
      const float* const group = &sums[(kBefore + column) / 2];
      const float2 even = epilogue.bias_pair(my_bias + column),
                   odd = epilogue.bias_pair(my_bias + column + 8);
      const auto pack = [&](int i, float2 bias) {
        return pack_bf16(epilogue(group[i], bias.x), epilogue(group[i + 1], bias.y));
      };
      const uint32_t packed[4] = {pack(0, even), pack(2, even), pack(4, odd), pack(6, odd)};
      ptx::stmatrix_x4(staging.chunk(my_row, column + my_column), packed);
    }
  }
}

/// Stages 64 rows of sums that lie as those of wgmma do.
template <int kFirst, int kCount, int kRows, int kColumns, class Epilogue = Identity>
__device__ __forceinline__ void stage_fragment(const float (&d)[kCount],
                                               SwizzledTile<kRows, kColumns>& staging, int row,
                                               const Epilogue& epilogue = {}, int first_column = 0) {
  stage_sums<WarpgroupFragment<2 * kCount>, kFirst>(d, staging, row, epilogue, first_column);
}

}  // namespace ladder
