/// @file
/// Shadow of common/device/tile_share.cuh: the time in which a thread copies its share, or starts the copies,
/// is measured.
#pragma once
#define TileShare UntimedTileShare
#include_next "common/device/tile_share.cuh"
#undef TileShare

#include "common/instrumented/trace.cuh"

namespace ladder {

template <class Tile, int kThreads>
class TileShare : public UntimedTileShare<Tile, kThreads> {
 public:
  using UntimedTileShare<Tile, kThreads>::UntimedTileShare;

  template <class Chunks>
  __device__ __forceinline__ void load(Chunks& chunks) const {
    const trace::Span span(trace::Event::load);
    UntimedTileShare<Tile, kThreads>::load(chunks);
  }
  template <class Move>
  __device__ __forceinline__ void for_each(Move&& move) const {
    const trace::Span span(trace::Event::load);
    UntimedTileShare<Tile, kThreads>::for_each(move);
  }
};

}  // namespace ladder
