/// @file
/// Where the sums that a thread keeps in registers lie in the tile.
///
/// A fragment is made of strips of 16 rows, each of them a warp's; in d one follows the other. Of a strip,
/// thread t of a warp holds, for the j-th 8 columns, what mma.sync's accumulators hold: d[4j], d[4j+1] =
/// C(t/4, 8j + 2*(t%4)) and the column after it, and d[4j+2], d[4j+3] the same 8 rows below.
#pragma once
#include <cuda_runtime.h>

#include "common/ptx/thread_ids.cuh"

namespace ladder {

inline constexpr int kStripRows = 16;

/// Where a strip begins within what its warpgroup multiplies.
struct StripOrigin {
  int row, column;
};

/// The accumulator of wgmma: 64 rows of kN columns, one strip for each warp.
template <int kN>
struct WarpgroupFragment {
  static constexpr int kRows = 64, kStrips = 1, kStripColumns = kN;
  /// Where this warp's only strip begins.
  __device__ __forceinline__ static StripOrigin origin(int) { return {kStripRows * warp_in_warpgroup(), 0}; }

  float d[kN / 2];
};

/// Each warp has kWarpRows x kWarpColumns. Warps lie side by side until they span kN columns, then below each
/// other.
template <int kN, int kWarpRows, int kWarpColumns>
struct WarpTileFragment {
  static constexpr int kWarpsAcross = kN / kWarpColumns;
  static_assert(kN % kWarpColumns == 0 && kWarpsPerWarpgroup % kWarpsAcross == 0);
  static constexpr int kRows = kWarpsPerWarpgroup / kWarpsAcross * kWarpRows;
  static constexpr int kStrips = kWarpRows / kStripRows, kStripColumns = kWarpColumns;
  /// Where a strip of this warp begins, counted from 0 downwards.
  __device__ __forceinline__ static StripOrigin origin(int strip) {
    const int warp = warp_in_warpgroup();
    return {warp / kWarpsAcross * kWarpRows + kStripRows * strip, warp % kWarpsAcross * kWarpColumns};
  }

  float d[kWarpRows * kWarpColumns / kWarp];
};

/// Sets all to zero.
template <int kCount>
__device__ __forceinline__ void clear(float (&d)[kCount]) {
#pragma unroll
  for (float& x : d) x = 0;
}

}  // namespace ladder
