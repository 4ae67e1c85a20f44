/// @file
/// The tensor cores of Hopper (sm_90a) with a tile of B of any width: WgmmaCore with n in steps of 8.
#pragma once
#include <cstdint>

#include "common/device/fragment.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/ptx/wgmma_widths.cuh"

namespace lesson06::any_shape {

/// A warpgroup multiplies 64 rows of A by the first kN columns of the tile of B, both in shared memory, in
/// the background. The last panel of B may be wider than what is multiplied.
template <int kN>
struct WideCore : ladder::WarpgroupFragment<kN> {
  using ladder::WarpgroupFragment<kN>::d;

  /// Starts d += a[row .. row + 63][:] · b[:][0 .. kN - 1]; with `first`, d = that. A warpgroup calls it as a
  /// whole.
  template <int kRows, int kK, int kColumns>
  __device__ __forceinline__ void start(const ladder::SwizzledTile<kRows, kK>& a, int row,
                                        const ladder::SwizzledTile<kK, kColumns>& b, bool first) {
    static_assert(kN <= kColumns);
    // As in WgmmaCore: descriptors count in units of 16 bytes.
    const uint64_t a_rows = ptx::matrix_descriptor(&a.panels[0][row], 16, 1024);
    const uint64_t b_panel =
        ptx::matrix_descriptor(&b.panels[0], ladder::SwizzledTile<kK, kColumns>::kPanelBytes, 1024);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK; k += 16) {
      const uint64_t a_k = a_rows + (k / 64 * ladder::SwizzledTile<kRows, kK>::kPanelBytes + k % 64 * 2) / 16;
      const uint64_t b_k = b_panel + k * 128 / 16;
      ptx::wgmma_m64k16<kN, true>(d, a_k, b_k, !first || k > 0);
    }
    ptx::wgmma_commit_group();
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

}  // namespace lesson06::any_shape
