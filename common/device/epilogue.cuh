/// @file
/// From a core's fragment to C in global memory.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

#include "common/device/fragment.cuh"
#include "common/device/pack_bf16.cuh"
#include "common/ptx/thread_ids.cuh"

namespace ladder {

/// Stores sums d, laid out as Fragment says (a core, or a type of fragment.cuh), as bf16 at (first_row,
/// first_column) of the row-major [m, n] matrix c, straight from registers. What lies outside is left out.
///
/// A lane holds 4 bytes of every group of 8 columns. Neighbouring lanes exchange registers by shuffle, so
/// that each ends up with 8 bytes of one group: a warp then writes whole 32-byte sectors, in half as many
/// instructions (docs/decisions.md, 5).
template <class Fragment, int kCount>
__device__ __forceinline__ void store_sums(const float (&d)[kCount], __nv_bfloat16* c, int first_row,
                                           int first_column, int m, int n) {
  constexpr int kSumsPerStrip = kCount / Fragment::kStrips;
  const int lane = lane_index(), quad = lane % 4;
  const bool odd = quad % 2 == 1;
#pragma unroll
  for (int strip = 0; strip < Fragment::kStrips; ++strip) {
    const StripOrigin origin = Fragment::origin(strip);
    const float* const sums = &d[strip * kSumsPerStrip];
    const int top = first_row + origin.row + lane / 4;
    // Of the two groups j and j + 1, an even lane stores 4 columns of the first, an odd lane 4 columns of the
    // second.
    const int left = first_column + origin.column + (odd ? 8 : 0) + quad / 2 * 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = top + 8 * half;
      __nv_bfloat16* const c_row = c + static_cast<size_t>(row) * n;
#pragma unroll
      for (int j = 0; j < kSumsPerStrip / 4; j += 2) {
        const uint32_t even_group = pack_bf16(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
        const uint32_t odd_group = pack_bf16(sums[4 * j + 4 + 2 * half], sums[4 * j + 5 + 2 * half]);
        const uint32_t kept = odd ? odd_group : even_group;
        const uint32_t received = __shfl_xor_sync(~0u, odd ? even_group : odd_group, 1);
        const uint2 four = odd ? make_uint2(received, kept) : make_uint2(kept, received);
        const int column = left + 8 * j;
        if (row >= m) continue;
        if (n % 4 == 0) {  // rows are 8-byte aligned, and the right edge cuts no group of four
          if (column < n) *reinterpret_cast<uint2*>(c_row + column) = four;
        } else {
          const __nv_bfloat16* const values = reinterpret_cast<const __nv_bfloat16*>(&four);
          for (int i = 0; i < 4 && column + i < n; ++i) c_row[column + i] = values[i];
        }
      }
    }
  }
}

/// Stores 64 rows of sums that lie as those of wgmma do.
template <int kCount>
__device__ __forceinline__ void store_fragment(const float (&d)[kCount], __nv_bfloat16* c, int first_row,
                                               int first_column, int m, int n) {
  store_sums<WarpgroupFragment<2 * kCount>>(d, c, first_row, first_column, m, n);
}

}  // namespace ladder
