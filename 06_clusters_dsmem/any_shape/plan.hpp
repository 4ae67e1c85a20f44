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
  int cluster_m = 1;           ///< blocks that share tiles of B
  int cluster_n = 1;           ///< blocks that share tiles of A
  int cluster_k = 1;           ///< blocks that split K
  bool stream_k = false;       ///< clusters share the K steps of the tiles that would not fill a wave

  int blocks() const { return cluster_m * cluster_n * cluster_k; }
  /// "128x256, cluster 2x1x1, stream-K": blocks along M, N and K, where there are several.
  std::string name() const;
  std::string tile() const;
  bool operator==(const Plan&) const = default;
};

/// Of so many clusters that the GPU holds, those to launch where `spare_sms` multiprocessors are left to
/// other kernels; at least one. A block of this lesson takes a multiprocessor for itself.
constexpr int clusters_beside(int spare_sms, int blocks, int resident_clusters) {
  const int spared = (spare_sms + blocks - 1) / blocks;
  return resident_clusters > spared ? resident_clusters - spared : 1;
}

/// An end of a cluster's share of K steps that is shorter than this goes to the neighbour, and no cluster
/// gets a shorter share.
constexpr int kFewestSteps = 4;

/// With more waves than this stream-K gains less than it loses, since blocks no longer walk through K side by
/// side: at 8192 cubed, 15.5 waves, it was 5 % slower than whole tiles.
constexpr int kMostWaves = 8;

/// How many tiles' K steps so many clusters share with stream-K: all, if there are fewer than clusters; else
/// as many as let the other waves be full, and at least one for each cluster, so that parts are long. None
/// where all waves are full or waves are so many that one more costs little, where tiles have too few K
/// steps, or so many that an int cannot tell shares apart.
constexpr int tiles_to_share(int tiles, int clusters, int k_steps) {
  const int rest = tiles % clusters;
  if (rest == 0 || tiles > kMostWaves * clusters || k_steps < 2 * kFewestSteps) return 0;
  const int shared = tiles < clusters ? tiles : clusters + rest;
  return int64_t{shared} * k_steps * (clusters + 1) <= INT32_MAX ? shared : 0;
}

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
  double waves = 0;  ///< rounds in which the GPU works them off; a fraction where clusters share steps
  int k_steps = 0;   ///< of 64, of one block for one tile
  int parts = 1;     ///< in which a tile is summed up at most; 1 unless clusters share steps
  double us = 0;     ///< of one launch, on an H200
};

/// One for each candidate that can run the shape, the cheapest first; of equally cheap ones the one that is
/// first in the list. There is always one if a candidate has cluster_k = 1.
std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Candidate>& candidates);

/// A table of the estimates, for people, with the reason why the first is the choice.
std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates);

}  // namespace lesson06::any_shape
