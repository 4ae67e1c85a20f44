/// @file
/// How a kernel divides the shared memory of a block. The kernel and the host both read it.
#pragma once
#include "common/device/tile_shape.cuh"

namespace lesson06::any_shape {

/// Columns of the tile, as the walk sees it, that are handed over to the storer at a time, and slots.
struct Ring {
  int staged_n, slots;
};

/// As many slots as fit beside a staging tile, the inboxes and the barriers, up to 8. The more is staged at a
/// time, the fewer hand-overs a tile takes: so as much as leaves the ring four slots.
/// @param tile_m,tile_n the tile, as the walk sees it
/// @param swaps whether wgmma's operands are swapped: then TMA moves rows of A in eights where it moves whole
/// panels of 64 columns of B, and any 16 rows of C may be staged
constexpr Ring ring_of(bool swaps, int tile_m, int tile_n, int cluster_k) {
  using ladder::tiles_over;
  const int own_n = tile_n / cluster_k;  // that a block completes, of the 64 rows of a warpgroup
  const int inbox = cluster_k == 1 ? 1 : (cluster_k - 1) * own_n / 8 * 16 * 128 + 16;
  const auto slots_beside = [=](int staged_n) {
    constexpr int kBlockBytes = 227 * 1024, kBarrierBytes = 1024, kRowBytes = 128;
    const int bytes = kBlockBytes - kBarrierBytes - tile_m * staged_n * 2 - tile_m / 64 * inbox;
    const int slots = bytes / (kRowBytes * (tile_m + (swaps ? tile_n : 64 * tiles_over(tile_n, 64))));
    return slots < 8 ? slots : 8;
  };
  if (!swaps) {
    const int wide = slots_beside(128), narrow = slots_beside(64);
    return own_n > 64 && (wide >= 4 || wide == narrow) ? Ring{128, wide} : Ring{64, narrow};
  }
  Ring ring{};
  for (int pieces = 1; pieces <= 4 && ring.slots < 4; pieces *= 2) {
    const int staged_n = 16 * tiles_over(own_n, 16 * pieces);
    if (slots_beside(staged_n) > ring.slots) ring = {staged_n, slots_beside(staged_n)};
  }
  return ring;
}

}  // namespace lesson06::any_shape
