/// @file
/// CUDA cores as a core; cores.cuh says what a core is.
#pragma once
#include "common/device/fragment.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder {

/// CUDA cores: the same tile, the same fragment, ordinary multiply-adds.
template <int kN>
struct FmaCore : WarpgroupFragment<kN> {
  static constexpr int kBlocksPerSm = 2;
  using WarpgroupFragment<kN>::d;

  /// Does nothing: the threads themselves read the tiles.
  __device__ __forceinline__ void publish() {}

  /// d += a[row .. row + 63][:] · b; with `first`, d = that. All is done when it returns.
  template <int kRows, int kK>
  __device__ __forceinline__ void start(const SwizzledTile<kRows, kK>& a, int row,
                                        const SwizzledTile<kK, kN>& b, bool first) {
    if (first) clear(d);
    const int lane = lane_index(), upper = row + 16 * warp_in_warpgroup() + lane / 4, column = lane % 4 * 2;
    for (int k = 0; k < kK; k += 8) {
      alignas(16) __nv_bfloat16 a_upper[8], a_lower[8];  // eight k of the two rows, each in one 16-byte load
      *reinterpret_cast<uint4*>(a_upper) = *reinterpret_cast<const uint4*>(a.chunk(upper, k));
      *reinterpret_cast<uint4*>(a_lower) = *reinterpret_cast<const uint4*>(a.chunk(upper + 8, k));
      const __nv_bfloat16* b_row = &b.panels[0][k][column];
#pragma unroll
      for (int i = 0; i < 8; ++i) {  // unrolled, the swizzle of row k + i is a constant
        const float upper_value = __bfloat162float(a_upper[i]), lower_value = __bfloat162float(a_lower[i]);
#pragma unroll
        for (int j = 0; j < kN / 8; ++j) {
          const auto pair =
              *reinterpret_cast<const __nv_bfloat162*>(b_row + (j / 8 * kK + i) * 64 + (j ^ i) % 8 * 8);
          // [fma_pair]
          const float left = __bfloat162float(pair.x), right = __bfloat162float(pair.y);
          d[4 * j] += upper_value * left;
          d[4 * j + 1] += upper_value * right;
          d[4 * j + 2] += lower_value * left;
          d[4 * j + 3] += lower_value * right;
          // [fma_pair]
        }
      }
    }
  }

  /// Does nothing: start() leaves nothing unfinished.
  template <int kInFlight>
  __device__ __forceinline__ void finish() {}
  /// As above.
  __device__ __forceinline__ void finish() {}
};

}  // namespace ladder
