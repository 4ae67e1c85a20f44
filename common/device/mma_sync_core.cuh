/// @file
/// The tensor cores of Ampere and later (sm_80) as a core; cores.cuh says what a core is.
#pragma once
#include <cstdint>

#include "common/device/fragment.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/mma_sync.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder {

/// Tensor cores of Ampere and later (sm_80). A warp brings what it multiplies from shared memory to
/// registers. The larger its piece of the tile, the more often each register is used: 64 x 64 takes 8 loads
/// for 32 products of 16 x 8.
///
/// Each fragment has one buffer. It is filled again, for the next 16 of k, as soon as the fragment's last
/// product has begun, so that loads and products overlap.
template <int kN, int kWarpRows = 64, int kWarpColumns = 64>
struct MmaSyncCore : WarpTileFragment<kN, kWarpRows, kWarpColumns> {
  using Fragment = WarpTileFragment<kN, kWarpRows, kWarpColumns>;
  /// Two blocks with tiles of 128 x 128 leave a thread as many registers for all else as for sums.
  static constexpr int kBlocksPerSm = kWarpRows * kWarpColumns >= 64 * 64 ? 2 : 1;
  using Fragment::d, Fragment::kStrips;

  /// Does nothing: the threads themselves fetch the fragments.
  __device__ __forceinline__ void publish() {}

  /// d += the warp's rows of a, counted from `row`, times its columns of b; with `first`, d = that. All is
  /// done when it returns.
  template <int kRows, int kK>
  __device__ __forceinline__ void start(const SwizzledTile<kRows, kK>& a, int row,
                                        const SwizzledTile<kK, kN>& b, bool first) {
    const StripOrigin origin = Fragment::origin(0);
    const int lane = lane_index();
    const int a_row = row + origin.row + lane % 16, b_column = origin.column + lane / 16 * 8;
    // 16 rows further down the swizzle is the same. So all addresses are constants away from a few, and take
    // no more registers than these.
    constexpr int kPanel = 64;  // columns, and elements from row to row
    const __nv_bfloat16 *a_at[kPanel / 16], *b_at[kGroups];
#pragma unroll
    for (int i = 0; i < kPanel / 16; ++i) a_at[i] = a.chunk(a_row, 16 * i + lane / 16 * 8);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) b_at[group] = b.chunk(lane % 16, b_column + 16 * group);
    const auto fetch_a = [&](int k, int strip) {
      const int rows_down = k / kPanel * kRows + 16 * strip;  // panels lie below each other
      ptx::ldmatrix_x4(a_fragments[strip], a_at[k % kPanel / 16] + rows_down * kPanel);
    };
    const auto fetch_b = [&](int k, int group) {  // .trans because mma wants k contiguous
      ptx::ldmatrix_x4_trans(b_fragments[group], b_at[group] + k * kPanel);
    };
#pragma unroll
    for (int strip = 0; strip < kStrips; ++strip) fetch_a(0, strip);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) fetch_b(0, group);
    if (first) clear(d);  // while they are on their way
#pragma unroll
    for (int k = 0; k < kK; k += 16) {
      const bool more = k + 16 < kK;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int strip = 0; strip < kStrips; ++strip) {
          multiply(strip, group);
          if (more && group == kGroups - 1) fetch_a(k + 16, strip);
        }
        if (more) fetch_b(k + 16, group);
      }
    }
  }

  /// Does nothing: start() leaves nothing unfinished.
  template <int kInFlight>
  __device__ __forceinline__ void finish() {}
  /// As above.
  __device__ __forceinline__ void finish() {}

 private:
  static constexpr int kGroups = kWarpColumns / 16;  ///< of 16 columns
  uint32_t a_fragments[kStrips][4], b_fragments[kGroups][4];

  /// 16 rows by 16 columns.
  __device__ __forceinline__ void multiply(int strip, int group) {
    const uint32_t(&a)[4] = a_fragments[strip], (&b)[4] = b_fragments[group];
    float* const sums = &d[(strip * kGroups + group) * 8];
    ptx::mma_m16n8k16(sums, a, b[0], b[1]);
    ptx::mma_m16n8k16(sums + 4, a, b[2], b[3]);
  }
};

}  // namespace ladder
