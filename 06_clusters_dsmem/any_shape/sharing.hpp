/// @file
/// How clusters share the tiles that would not fill a wave. The kernel and the host both read it.
#pragma once
#include "common/device/tile_shape.cuh"

namespace lesson06::any_shape {

constexpr int kStepK = 64;  ///< columns of A in a K step

/// With stream-K no cluster computes fewer K steps of a tile than this.
constexpr int kMinSteps = 4;

/// A tile is cut into more than two parts only if they are at least this long. Each doubling of the parts
/// costs one more meeting in fix_up(), which takes about as long as so many steps.
constexpr int kPartSteps = 12;
constexpr int kMaxParts = 16;

/// What a cluster does between the rests of two tiles, in steps: it stores sums, publishes and counts them.
/// At 128x256 it was 4 us, 6.5 steps; smaller tiles have shorter steps.
constexpr int kStoreSteps = 8;

/// How clusters share the tiles that do not fill a wave. Of each tile `parts` clusters compute equal parts.
/// Where there is one cluster for each tile and some are left over, it leaves a rest; each cluster that is
/// left over computes the rests of `rests` tiles, one after the other, in about the same time. So clusters
/// are at few places of K at one time, and those at the same place use the same parts of A and B.
struct Sharing {
  int tiles = 0;  ///< that are shared, the first ones
  int parts = 1;  ///< clusters that compute an equal part of each
  int rest = 0;   ///< K steps of each tile that are left then
  int rests = 0;  ///< tiles whose rest one cluster computes; 0 if none is left

  /// Clusters that compute steps of a shared tile.
  __host__ __device__ constexpr int contributors() const { return parts + (rests > 0); }
  /// Clusters that are at work on shared tiles.
  constexpr int clusters() const {
    return tiles * parts + (rests > 0 ? ladder::tiles_over(tiles, rests) : 0);
  }
  /// K steps of the longest part.
  constexpr int part(int k_steps) const { return ladder::tiles_over(k_steps - rest, parts); }
};

/// How to share the tiles that are left after the full waves, or all if there are fewer than clusters. None
/// is shared where all waves are full or nearly so, and where tiles have too few K steps.
constexpr Sharing share_last_wave(int tiles, int clusters, int k_steps) {
  Sharing shared{tiles % clusters};
  if (shared.tiles == 0 || k_steps < 2 * kMinSteps) return {};
  const int worth = k_steps / kPartSteps < 2 ? 2 : k_steps / kPartSteps, room = clusters / shared.tiles;
  shared.parts = room < worth ? room : worth;
  if (shared.parts > kMaxParts) shared.parts = kMaxParts;
  if (shared.parts > 1) return shared;
  const int left_over = clusters - shared.tiles;
  if (left_over == 0) return {};
  // rests * (rest + kStoreSteps) = k_steps - rest
  shared.rests = ladder::tiles_over(shared.tiles, left_over);
  shared.rest = (k_steps - shared.rests * kStoreSteps) / (shared.rests + 1);
  // Where less than a fifth of a tile was saved, the launch took longer, on average over the recorded shapes.
  return shared.rest >= kMinSteps && 5 * shared.rest >= k_steps ? shared : Sharing();
}

}  // namespace lesson06::any_shape
