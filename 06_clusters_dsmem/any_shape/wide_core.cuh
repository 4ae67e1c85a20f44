/// @file
/// The tensor cores of Hopper (sm_90a) with a tile of B of any width: WgmmaCore with n in steps of 8; and
/// with a tile of A of any height, where the operands are swapped.
#pragma once
#include <cstdint>

#include "common/device/fragment.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/ptx/wgmma_widths.cuh"

namespace lesson06::any_shape {

/// A warpgroup multiplies 64 rows of A by the first kN columns of the tile of B, both in shared memory, in
/// the background. The last panel of B may be wider than what is multiplied.
template <int kN, bool kSwaps = false>
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

// [swapped]
/// The same product with swapped operands, as C transposed = B transposed · A transposed. wgmma's m is 64,
/// and its n comes in eights: so the sums are those of 64 columns and kN rows of C, transposed.
template <int kN>
struct WideCore<kN, true> : WideCore<kN, false> {
  using WideCore<kN, false>::d;

  /// Starts d += (a · b[:][column .. column + 63]) transposed; with `first`, d = that. A warpgroup calls it
  /// as a whole. Both tiles lie as they do without a swap: so wgmma's first operand has m contiguous, and its
  /// second one k.
  template <int kK, int kColumns>
  __device__ __forceinline__ void start(const ladder::SwizzledTile<kN, kK>& a, int column,
                                        const ladder::SwizzledTile<kK, kColumns>& b, bool first) {
    static_assert(kK == ladder::kPanelColumns, "a has one panel");
    // 64 columns of b are one panel, so that nothing reads the leading offset. 16 of its rows are 2048 bytes,
    // 16 columns of a 32.
    const uint64_t b_panel = ptx::matrix_descriptor(&b.panels[column / 64], 16, 1024);
    const uint64_t a_rows = ptx::matrix_descriptor(&a.panels[0], 16, 1024);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK; k += 16)
      ptx::wgmma_m64k16<kN, false, true>(d, b_panel + k * 128 / 16, a_rows + k * 2 / 16, !first || k > 0);
    ptx::wgmma_commit_group();
  }
};
// [swapped]

}  // namespace lesson06::any_shape
