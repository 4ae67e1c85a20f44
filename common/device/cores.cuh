/// @file
/// Three ways to multiply a tile. A warpgroup multiplies kRows rows of A by the tile of B into registers.
///
/// All three cores have the same interface. With wgmma and fma a warpgroup has 64 rows, each of its warps 16:
/// thread t of the warpgroup holds, for every 8 columns j, d[4j], d[4j+1] = C(row, 8j + 2*(t%4)),
/// C(row, ... + 1) with row = 16*(t/32) + t%32/4, and d[4j+2], d[4j+3] the same 8 rows below. This is the
/// accumulator of wgmma, which is that of mma.sync, four warps high: a strip of 16 rows for each warp. With
/// mma_sync a warp has several strips; each is laid out like that. fragment.cuh says where strips lie.
///
///   core.publish()       before the barrier after which other threads' tiles are multiplied
///   core.start(a, r, b, first)  d += a[r .. r+kRows-1][:] · b; the first of a tile overwrites d instead
///   core.finish<n>()     waits until at most n of the products started are unfinished
///   core.d               the sums of this thread; store_sums (epilogue.cuh) asks the core where they lie
#pragma once
#include <cstdint>

#include "common/device/fragment.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/mma_sync.cuh"
#include "common/ptx/thread_ids.cuh"
#include "common/ptx/wgmma.cuh"

namespace ladder {

/// Tensor cores of Hopper (sm_90a). They read both tiles from shared memory, in the background.
template <int kN>
struct WgmmaCore : WarpgroupFragment<kN> {
  static constexpr int kBlocksPerSm = 2;  ///< 256 threads with this core fit twice into an SM's registers
  using WarpgroupFragment<kN>::d;

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

/// Tensor cores of Ampere and later (sm_80). A warp brings what it multiplies from shared memory to
/// registers. The larger its piece of the tile, the more often each register is used: 64 x 64 takes 8 loads
/// for 32 products of 16 x 8.
///
/// While 16 of k are multiplied, the fragments of the next 16 are fetched.
template <int kN, int kWarpRows = 64, int kWarpColumns = 64>
struct MmaSyncCore : WarpTileFragment<kN, kWarpRows, kWarpColumns> {
  using Fragment = WarpTileFragment<kN, kWarpRows, kWarpColumns>;
  /// Two blocks with tiles of 128 x 128 leave a thread as many registers for all else as for sums.
  static constexpr int kBlocksPerSm = kWarpRows * kWarpColumns >= 64 * 64 ? 2 : 1;
  using Fragment::d, Fragment::kStrips;

  __device__ __forceinline__ void publish() {}

  template <int kRows, int kK>
  __device__ __forceinline__ void start(const SwizzledTile<kRows, kK>& a, int row,
                                        const SwizzledTile<kK, kN>& b, bool first) {
    const StripOrigin origin = Fragment::origin(0);
    const int lane = lane_index();
    const int a_row = row + origin.row + lane % 16, b_column = origin.column + lane / 16 * 8;
    const auto fetch_a = [&](int k, int group) {  // a share of the strips with each group
#pragma unroll
      for (int strip = group; strip < kStrips; strip += kGroups)
        ptx::ldmatrix_x4(a_fragments[k / 16 % 2][strip], a.chunk(a_row + 16 * strip, k + lane / 16 * 8));
    };
    const auto fetch_b = [&](int k, int group) {  // .trans because mma wants k contiguous
      ptx::ldmatrix_x4_trans(b_fragments[group], b.chunk(k + lane % 16, b_column + 16 * group));
    };
    if (first) clear(d);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      fetch_a(0, group);
      fetch_b(0, group);
    }
    // Small pieces are for kernels with more warps, which leave each fewer registers for addresses.
    [[maybe_unused]] constexpr int kAtOnce = kWarpRows * kWarpColumns >= 64 * 64 ? kK / 16 : 2;
#pragma unroll kAtOnce
    for (int k = 0; k < kK; k += 16) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (k + 16 < kK) fetch_a(k + 16, group);
        multiply(k / 16 % 2, group);
        if (k + 16 < kK) fetch_b(k + 16, group);
      }
    }
  }

  template <int kInFlight>
  __device__ __forceinline__ void finish() {}

 private:
  static constexpr int kGroups = kWarpColumns / 16;  ///< of 16 columns
  uint32_t a_fragments[2][kStrips][4], b_fragments[kGroups][4];

  /// All rows by a group of columns.
  __device__ __forceinline__ void multiply(int half, int group) {
    const uint32_t(&b)[4] = b_fragments[group];
#pragma unroll
    for (int strip = 0; strip < kStrips; ++strip) {
      float* const sums = &d[(strip * kGroups + group) * 8];
      ptx::mma_m16n8k16(sums, a_fragments[half][strip], b[0], b[1]);
      ptx::mma_m16n8k16(sums + 4, a_fragments[half][strip], b[2], b[3]);
    }
  }
};

/// CUDA cores: the same tile, the same fragment, ordinary multiply-adds.
template <int kN>
struct FmaCore : WarpgroupFragment<kN> {
  static constexpr int kBlocksPerSm = 2;
  using WarpgroupFragment<kN>::d;

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

  template <int kInFlight>
  __device__ __forceinline__ void finish() {}
};

}  // namespace ladder
