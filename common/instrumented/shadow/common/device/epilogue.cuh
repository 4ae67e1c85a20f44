/// @file
/// Shadow of common/device/epilogue.cuh: stores are timed.
#pragma once
#define store_sums store_sums_untimed
#include_next "common/device/epilogue.cuh"
#undef store_sums

#include "common/instrumented/trace.cuh"

namespace ladder {

template <class Fragment, int kCount>
__device__ __forceinline__ void store_sums(const float (&d)[kCount], __nv_bfloat16* c, int first_row,
                                           int first_column, int m, int n) {
  const trace::Span span(trace::Event::store);
  store_sums_untimed<Fragment>(d, c, first_row, first_column, m, n);
}

}  // namespace ladder
