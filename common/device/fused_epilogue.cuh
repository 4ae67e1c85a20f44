/// @file
/// A staged epilogue that does more to the sums than rounding them.
#pragma once
#include "common/device/epilogue_functors.cuh"
#include "common/device/staged_epilogue.cuh"

namespace ladder {

/// stage_fragment() with an epilogue, which is applied to each sum before it is rounded.
/// @param first_column the column of C that d[0] belongs to
template <int kCount, int kRows, int kColumns, class Epilogue>
__device__ __forceinline__ void stage_fragment(const float (&d)[kCount], int first,
                                               SwizzledTile<kRows, kColumns>& staging, int row,
                                               const Epilogue& epilogue, int first_column) {
  const int my_first = first_column + first + lane_index() % 4 * 2;
  float finished[kColumns / 2];
#pragma unroll
  for (int column = 0; column < kColumns; column += 8) {  // a thread has two of these eight, in two rows
    const float2 bias = epilogue.bias_pair(my_first + column);
    const float* const sums = &d[(first + column) / 2];
    finished[column / 2] = epilogue(sums[0], bias.x);
    finished[column / 2 + 1] = epilogue(sums[1], bias.y);
    finished[column / 2 + 2] = epilogue(sums[2], bias.x);
    finished[column / 2 + 3] = epilogue(sums[3], bias.y);
  }
  stage_fragment(finished, 0, staging, row);
}

}  // namespace ladder
