/// @file
/// The tensor cores of Hopper (sm_90a) as a core. What a core is, cores.cuh says.
#pragma once
#include <cstdint>

#include "common/device/fragment.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/fence.cuh"
#include "common/ptx/wgmma.cuh"

namespace ladder {

/// A warpgroup multiplies 64 rows of A by the tile of B, both in shared memory, in the background.
template <int kN>
struct WgmmaCore : WarpgroupFragment<kN> {
  static constexpr int kBlocksPerSm = 2;  ///< with kN up to 128, 256 threads fit twice into an SM
  using WarpgroupFragment<kN>::d;

  /// wgmma reads through the async proxy: what threads stored must be published to it, by a fence before the
  /// barrier.
  __device__ __forceinline__ void publish() { ptx::fence_proxy_async(); }

  /// Starts d += a[row .. row + 63][:] · b; with `first`, d = that. A warpgroup calls it as a whole.
  template <int kRows, int kK>
  __device__ __forceinline__ void start(const SwizzledTile<kRows, kK>& a, int row,
                                        const SwizzledTile<kK, kN>& b, bool first) {
    // [start]
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
    // [start]
  }

  /// Waits until at most kInFlight of the products started are unfinished; without a number, until none is.
  template <int kInFlight = 0>
  __device__ __forceinline__ void finish() {
    ptx::wgmma_wait_group<kInFlight>();
    if constexpr (kInFlight == 0) ptx::keep_in_registers(d);
  }
  /// Waits until only the newest product is unfinished.
  __device__ __forceinline__ void finish_all_but_last() { finish<1>(); }
};

}  // namespace ladder
