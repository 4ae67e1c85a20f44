/// @file
/// Shadow of common/device/epilogue.cuh: stores are timed.
#pragma once
#define store_fragment store_fragment_untimed
#include_next "common/device/epilogue.cuh"
#undef store_fragment

#include "common/instrumented/trace.cuh"

namespace ladder {

template <class Fragment>
__device__ __forceinline__ void store_fragment(const Fragment& fragment, __nv_bfloat16* c, int first_row,
                                               int first_column, int m, int n) {
  const trace::Span span(trace::Event::store);
  store_fragment_untimed(fragment, c, first_row, first_column, m, n);
}

}  // namespace ladder
