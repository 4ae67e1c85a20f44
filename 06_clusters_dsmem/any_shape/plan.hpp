/// @file
/// Which tile and which cluster a problem gets: a small model of what a kernel costs, measured on an H200.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

/// With stream-K no cluster gets fewer K steps than this, and no cluster computes fewer of a tile that it
/// does not compute alone.
constexpr int kMinSteps = 4;

/// With more waves than this stream-K gains less than it loses, since blocks no longer walk through K side by
/// side: at 8192 cubed, 15.5 waves, it was 5 % slower than whole tiles.
constexpr int kMaxWaves = 8;

/// How many tiles stream-K splits: all, if there are fewer than clusters; else as many as leave the other
/// waves full, and at least one for each cluster, so that few tiles have many partial sums. None where all
/// waves are full, where waves are so many that one more costs little, where tiles have too few K steps, or
/// so many that an int cannot count them all.
constexpr int tiles_to_split(int tiles, int clusters, int k_steps) {
  const int rest = tiles % clusters;
  if (rest == 0 || tiles > kMaxWaves * clusters || k_steps < 2 * kMinSteps) return 0;
  const int split = tiles < clusters ? tiles : clusters + rest;
  return int64_t{split} * k_steps * (clusters + 1) <= INT32_MAX ? split : 0;
}

/// How many tiles are computed by several clusters each, of those that stream-K splits; counted as the kernel
/// does (StepWalk::contributors).
int shared_tiles(int tiles, int clusters, int k_steps);

/// Why there is none, as the end of a sentence.
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
  int partials = 1;  ///< partial sums of a tile in global memory, at most; 1 without stream-K
  double us = 0;     ///< of one launch, on an H200
};

/// An estimate for each candidate that can run the shape, the cheapest first; equally cheap ones in the order
/// of the list. There is always one if a candidate has cluster_k = 1.
std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Candidate>& candidates);

/// The estimates as a table, under a line that says why the first plan is chosen.
std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates);

}  // namespace lesson06::any_shape
