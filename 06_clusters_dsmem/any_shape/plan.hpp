/// @file
/// Which tile and which cluster a problem gets: a small model of what a kernel costs, fitted to times
/// measured on an H100 and an H200.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "common/device/tile_shape.cuh"
#include "common/host/problem/shape.hpp"

namespace lesson06::any_shape {

/// One of the kernels that are compiled.
struct Plan {
  int tile_m = 0, tile_n = 0;  ///< of C
  int cluster_m = 1;           ///< blocks that receive the same tiles of B
  int cluster_n = 1;           ///< blocks that receive the same tiles of A
  int cluster_k = 1;           ///< blocks that split K
  bool stream_k = false;       ///< clusters split the tiles that would not fill a wave along K

  int blocks() const { return cluster_m * cluster_n * cluster_k; }
  /// "128x256, cluster 2x1x1, stream-K": blocks along M, N and K, where there are several.
  std::string name() const;
  std::string tile() const;
  bool operator==(const Plan&) const = default;
};

/// How many clusters to launch of the `resident_clusters` that the GPU holds, where `spare_sms`
/// multiprocessors are left to other kernels; at least one. A block of these kernels fills a multiprocessor.
constexpr int clusters_beside(int spare_sms, int blocks, int resident_clusters) {
  const int spared = (spare_sms + blocks - 1) / blocks;
  return resident_clusters > spared ? resident_clusters - spared : 1;
}

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
  shared.parts = std::min({clusters / shared.tiles, std::max(2, k_steps / kPartSteps), kMaxParts});
  if (shared.parts > 1) return shared;
  const int left_over = clusters - shared.tiles;
  if (left_over == 0) return {};
  // rests * (rest + kStoreSteps) = k_steps - rest
  shared.rests = ladder::tiles_over(shared.tiles, left_over);
  shared.rest = (k_steps - shared.rests * kStoreSteps) / (shared.rests + 1);
  // Where less than a fifth of a tile was saved, the launch took longer, on average over the recorded shapes.
  return shared.rest >= kMinSteps && 5 * shared.rest >= k_steps ? shared : Sharing();
}

/// Why no tile is shared, as the end of a sentence.
std::string why_none_is_shared(int tiles, int clusters, int k_steps);

/// A plan, and how many of its clusters the GPU holds at one time.
struct Candidate {
  Plan plan;
  int resident_clusters;
};

/// What a plan is expected to cost.
struct Estimate {
  Plan plan;
  int resident_clusters = 0;
  int clusters = 0;  ///< of work: tiles of C, cluster_m times cluster_n of them at a time
  double waves = 0;  ///< rounds in which the GPU computes them; a fraction with stream-K
  int k_steps = 0;   ///< of 64, of one block for one tile
  int partials = 1;  ///< sums of a tile by different clusters; 1 where none is shared
  double us = 0;     ///< of one launch
};

constexpr double kH200BytesPerUs = 4.917e6;  ///< of its memory

/// An estimate for each candidate that can run the shape, the cheapest first; equally cheap ones in the order
/// of the list. A kernel with stream-K that shares no tile is left out if a kernel for whole tiles can run.
/// There is always an estimate if a candidate has cluster_k = 1.
/// @param memory_bytes_per_us what the GPU's memory moves at most
std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Candidate>& candidates,
                                double memory_bytes_per_us = kH200BytesPerUs);

/// The estimates as a table, under a line that says why the first plan is chosen.
std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates);

}  // namespace lesson06::any_shape
