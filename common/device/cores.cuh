/// @file
/// Three ways to multiply a tile. One warpgroup multiplies 64 rows of A by the tile of B into registers.
///
/// All three cores have the same interface and the same fragment: thread t of the warpgroup holds, for every
/// 8 columns j, d[4j], d[4j+1] = C(row, 8j + 2*(t%4)), C(row, ... + 1) with row = 16*(t/32) + t%32/4, and
/// d[4j+2], d[4j+3] the same 8 rows below. This is the accumulator of wgmma, which is that of mma.sync, four
/// warps high.
///
///   core.publish()       before the barrier after which other threads' tiles are multiplied
///   core.start(a, r, b, first)  d += a[r .. r+63][:] · b; the first product of a tile overwrites d instead
///   core.finish<n>()     waits until at most n of the products started are unfinished
#pragma once
#include <cstdint>

#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mma_sync.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/wgmma.cuh"

namespace ladder {

/// Sets all to zero.
template <int kCount>
__device__ __forceinline__ void clear(float (&d)[kCount]) {
#pragma unroll
  for (float& x : d) x = 0;
}

/// Tensor cores of Hopper (sm_90a). They read both tiles from shared memory, in the background.
template <int kN>
struct WgmmaCore {
  static constexpr int kBlocksPerSm = 2;  ///< 256 threads with this core fit twice into an SM's registers
  float d[kN / 2];

  /// wgmma reads through the async proxy: what threads stored must be published to it, by a fence before the
  /// barrier.
  __device__ __forceinline__ void publish() { ptx::fence_proxy_async(); }

  /// Starts d += a[row .. row + 63][:] · b; with `first`, d = that. A warpgroup calls it as a whole.
  template <int kRows, int kK>
  __device__ __forceinline__ void start(const SwizzledTile<kRows, kK>& a, int row,
                                        const SwizzledTile<kK, kN>& b, bool first) {
    // Descriptors count in units of 16 bytes. A has k contiguous: 16 columns are 32 bytes within the swizzled
    // row of a panel of 64 columns. B has n contiguous: 16 rows are 2048 bytes.
    const uint64_t a_rows = ptx::matrix_descriptor(&a.panels[0][row], 16, 1024);
    const uint64_t b_panel = ptx::matrix_descriptor(&b.panels[0], SwizzledTile<kK, kN>::kPanelBytes, 1024);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK; k += 16) {
      const uint64_t a_k = a_rows + (k / 64 * SwizzledTile<kRows, kK>::kPanelBytes + k % 64 * 2) / 16;
      const uint64_t b_k = b_panel + k * 128 / 16;
      if constexpr (kN == 64) ptx::wgmma_m64n64k16<true>(d, a_k, b_k, !first || k > 0);
      if constexpr (kN == 128) ptx::wgmma_m64n128k16<true>(d, a_k, b_k, !first || k > 0);
      if constexpr (kN == 192) ptx::wgmma_m64n192k16<true>(d, a_k, b_k, !first || k > 0);
      if constexpr (kN == 256) ptx::wgmma_m64n256k16<true>(d, a_k, b_k, !first || k > 0);
    }
    ptx::wgmma_commit_group();
  }

  /// Waits until at most kInFlight of the products started are unfinished.
  template <int kInFlight>
  __device__ __forceinline__ void finish() {
    ptx::wgmma_wait_group<kInFlight>();
    if constexpr (kInFlight == 0) ptx::keep_in_registers(d);
  }
};

/// Tensor cores of Ampere and later (sm_80). Each warp brings 16 rows of A and all of B to registers, then
/// multiplies. Unrolled as far as it goes, which hides the latency of ldmatrix and takes more than half of
/// the registers.
template <int kN>
struct MmaSyncCore {
  static constexpr int kBlocksPerSm = 1;
  float d[kN / 2];

  __device__ __forceinline__ void publish() {}

  template <int kRows, int kK>
  __device__ __forceinline__ void start(const SwizzledTile<kRows, kK>& a, int row,
                                        const SwizzledTile<kK, kN>& b, bool first) {
    if (first) clear(d);
    const int lane = lane_index(), a_row = row + 16 * warp_in_warpgroup() + lane % 16;
#pragma unroll
    for (int k = 0; k < kK; k += 16) {
      uint32_t a_fragment[4];
      ptx::ldmatrix_x4(a_fragment, a.chunk(a_row, k + lane / 16 * 8));
#pragma unroll
      for (int column = 0; column < kN; column += 16) {
        uint32_t b_fragment[4];  // rows k .. k+15 of two groups of 8 columns; .trans because mma wants k
                                 // contiguous
        ptx::ldmatrix_x4_trans(b_fragment, b.chunk(k + lane % 16, column + lane / 16 * 8));
        ptx::mma_m16n8k16(&d[column / 2], a_fragment, b_fragment[0], b_fragment[1]);
        ptx::mma_m16n8k16(&d[column / 2 + 4], a_fragment, b_fragment[2], b_fragment[3]);
      }
    }
  }

  template <int kInFlight>
  __device__ __forceinline__ void finish() {}
};

/// CUDA cores: the same tile, the same fragment, ordinary multiply-adds.
template <int kN>
struct FmaCore {
  static constexpr int kBlocksPerSm = 2;
  float d[kN / 2];

  __device__ __forceinline__ void publish() {}

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
          const float left = __bfloat162float(pair.x), right = __bfloat162float(pair.y);
          d[4 * j] += upper_value * left;
          d[4 * j + 1] += upper_value * right;
          d[4 * j + 2] += lower_value * left;
          d[4 * j + 3] += lower_value * right;
        }
      }
    }
  }

  template <int kInFlight>
  __device__ __forceinline__ void finish() {}
};

}  // namespace ladder
