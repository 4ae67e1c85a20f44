/// @file
/// The softmax of rows that come in blocks, and are never there as a whole.
///
/// A thread holds of two rows, t/4 and 8 below it, every fourth pair of columns; the four threads of a quad
/// have a row together (fragment.cuh).
#pragma once
#include <cmath>

#include "05_ws_double_buffer/attention/products.cuh"
#include "common/device/epilogue.cuh"
#include "common/ptx/exp2.cuh"
#include "common/ptx/thread_ids.cuh"

namespace lesson05::attention {

/// 1 / sqrt(kDim), times log2(e): exp(x / sqrt(d)) is 2 to the power of x times this.
constexpr float kScale = 0.08838834764831845f * 1.4426950408889634f;

/// The first row of this thread, of the 64 of its warpgroup.
__device__ __forceinline__ int first_row_of_thread() { return 16 * warp_in_warpgroup() + lane_index() / 4; }

// [mask]
/// Query i of the 64 from `first_query` sees keys 0 to length - 1; with `causal` none behind i. Of the keys
/// from `first_key` the scores of those that it does not see become minus infinity.
__device__ __forceinline__ void mask(Scores& s, int first_query, int first_key, const Attention& p) {
  if (first_key + kKeys <= (p.causal ? min(p.length, first_query + 1) : p.length)) return;  // sees all
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = first_query + first_row_of_thread() + 8 * half;
    const int end = (p.causal ? min(p.length, query + 1) : p.length) - first_key - 2 * (lane_index() % 4);
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (8 * j + i >= end) s[4 * j + 2 * half + i] = -INFINITY;
    }
  }
}
// [mask]

/// Combines the values of a quad.
template <class Combine>
__device__ __forceinline__ float over_quad(float x, const Combine& combine) {
  x = combine(x, __shfl_xor_sync(~0u, x, 1));
  return combine(x, __shfl_xor_sync(~0u, x, 2));
}

/// Of two rows: the largest score so far, and the sum of the exponentials relative to it.
struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};  ///< of this thread's columns
  float correction[2];    ///< by which what was summed up before has to be multiplied

  // [update]
  /// Takes the next block of scores, and leaves their exponentials in their place.
  __device__ __forceinline__ void update(Scores& s) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = largest[half];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
        most = fmaxf(most, fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
      most = over_quad(most, [](float a, float b) { return fmaxf(a, b); });
      correction[half] = ptx::exp2_approx((largest[half] - most) * kScale);
      largest[half] = most;
      sum[half] *= correction[half];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int i = 4 * j + 2 * half; i < 4 * j + 2 * half + 2; ++i) {
          s[i] = ptx::exp2_approx(s[i] * kScale - most * kScale);
          sum[half] += s[i];
        }
      }
    }
  }
  // [update]

  /// What was summed up with an earlier maximum becomes what it is with the one of now.
  __device__ __forceinline__ void rescale(Sums& o) const { multiply(o, correction); }

  /// Divides by the sum over the row.
  __device__ __forceinline__ void finish(Sums& o) const {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      factor[half] = 1 / over_quad(sum[half], [](float a, float b) { return a + b; });
    multiply(o, factor);
  }

 private:
  __device__ __forceinline__ static void multiply(Sums& o, const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) o[i] *= factor[i % 4 / 2];
  }
};

}  // namespace lesson05::attention
