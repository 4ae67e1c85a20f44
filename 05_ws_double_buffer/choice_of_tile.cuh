/// @file
/// Which tile lesson.cu of 05 and of 06 take where the reader leaves them the choice.
#pragma once
#include "05_ws_double_buffer/gemm.cuh"
#include "common/cuda/residency.hpp"

namespace lesson05 {

/// When does the wide tile pay? Where every multiprocessor still gets one. If not, step 2 is launched.
template <int kSlots>
bool wide_tile_pays(const Gemm& p) {
  const int tiles = tiles_over(p.m, kTile.m) * tiles_over(p.n, kTile.n);
  return tiles >= resident_blocks(gemm<kSlots>, kThreads, sizeof(SharedStorage<kSlots>));
}

}  // namespace lesson05
