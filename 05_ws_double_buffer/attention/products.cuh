/// @file
/// The two products of attention. Both run in the background, as one group of wgmma each.
#pragma once
#include <cstdint>

#include "05_ws_double_buffer/attention/problem.hpp"
#include "common/device/pack_bf16.cuh"
#include "common/device/swizzled_tile.cuh"
#include "common/ptx/wgmma_registers.cuh"

namespace lesson05::attention {
using namespace ladder;

constexpr int kKeys = 128;  ///< of a block of K and V
using TileKv = SwizzledTile<kKeys, kDim>;
using Scores = float[kKeys / 2];          ///< of 64 queries, as wgmma leaves them in a warpgroup
using Weights = uint32_t[kKeys / 16][4];  ///< the same 64 rows as the operand A, for 16 keys at a time
using Sums = float[kDim / 2];             ///< 64 rows of O

/// Starts s = q[row .. row + 63][:] · k^T. Both tiles have the dimension that is summed over contiguous: 16
/// of it are 32 bytes within a panel of 64 columns.
template <int kRows>
__device__ __forceinline__ void start_scores(Scores& s, const SwizzledTile<kRows, kDim>& q, int row,
                                             const TileKv& k) {
  const uint64_t q_rows = ptx::matrix_descriptor(&q.panels[0][row], 16, 1024);
  const uint64_t k_rows = ptx::matrix_descriptor(&k.panels[0], 16, 1024);
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kDim; i += 16) {
    const uint64_t q_i = q_rows + (i / 64 * SwizzledTile<kRows, kDim>::kPanelBytes + i % 64 * 2) / 16;
    const uint64_t k_i = k_rows + (i / 64 * TileKv::kPanelBytes + i % 64 * 2) / 16;
    ptx::wgmma_m64n128k16<false>(s, q_i, k_i, i > 0);
  }
  ptx::wgmma_commit_group();
}

// [start_sums]
/// Starts o += p · v. Of V the other dimension is contiguous, as of B in lesson 05: 16 keys are 2048 bytes.
__device__ __forceinline__ void start_sums(Sums& o, const Weights& p, const TileKv& v) {
  const uint64_t v_rows = ptx::matrix_descriptor(&v.panels[0], TileKv::kPanelBytes, 1024);
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kKeys / 16; ++i) ptx::wgmma_m64n128k16<true>(o, p[i], v_rows + i * 2048 / 16, true);
  ptx::wgmma_commit_group();
}
// [start_sums]

/// Waits until at most kInFlight of the products are unfinished; `registers` are those of the finished one.
template <int kInFlight = 0, class Registers>
__device__ __forceinline__ void finish(Registers& registers) {
  ptx::wgmma_wait_group<kInFlight>();
  ptx::keep_in_registers(registers);
}

// [to_weights]
/// What a thread holds of the result of one product is what it has to hold of the operand of the other:
/// columns 2*(t%4) and the one after it, of two rows, in every 8 columns. Only their number of bits changes.
__device__ __forceinline__ void to_weights(const Scores& s, Weights& p) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; i += 2) p[i / 8][i % 8 / 2] = pack_bf16(s[i], s[i + 1]);
}
// [to_weights]

}  // namespace lesson05::attention
