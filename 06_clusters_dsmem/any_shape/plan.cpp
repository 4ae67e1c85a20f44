/// @file
/// What a kernel costs: its launch, its K steps, and what blocks do together.
#include "06_clusters_dsmem/any_shape/plan.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "common/device/tile_shape.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson06::any_shape {
namespace {

constexpr int kNarrowTile = 64;
constexpr int kLine = 64;        ///< elements of a cache line
constexpr int kWidePiece = 128;  ///< columns that are staged at a time: so many, or half as many

// Fitted by fit_plan.py to the recorded times of all plans on many shapes, on an H100 and an H200. Costs that
// depend on the tile are given for 128x256.

// clang-format off
constexpr double kLaunchUs = 1.728;
constexpr double kFillSteps = 2.521;      ///< the K steps whose loads nothing hides, before the first products
constexpr double kSumUs = 0.970;          ///< more for each tile where a cluster splits K: partial sums travel
constexpr double kTensorUs = 0.554;       ///< the products of a K step
constexpr double kClusterFactor = 1.225;  ///< times as much in a cluster, whose blocks wait for each other
constexpr double kNarrowFactor = 1.118;   ///< times as much for 64 columns, for which A is read as often as for 256
constexpr double kPieceUs = 0.328;        ///< to stage columns of a tile, while tensor cores wait
constexpr double kLoadUs = 0.495;         ///< the tiles of A and B of a K step, from L2
constexpr double kStraddleFactor = 1.393; ///< times as much for rows that do not begin where a cache line does
constexpr double kIdleFactor = 0.566;     ///< what an SM without a tile in the last wave costs, over one with a tile
constexpr double kMemoryFactor = 0.933;   ///< A and B from memory, and C to it, over what its bandwidth says
constexpr double kSharedLineFactor = 0.859; ///< what a line of C costs more where two clusters write to it
constexpr double kStreamKUs = 1.755;      ///< more for a launch that splits tiles
constexpr double kFixUpUs = 1.435;        ///< a tile's partial sums, stored or read once

/// A kernel's measured time over the time that the terms above predict, on average over many shapes: how well its
/// warpgroups take turns, how many slots its tiles leave room for, and so on.
struct KernelFactor {
  Plan plan;
  double times;
};
constexpr KernelFactor kKernelFactors[] = {
  {{64, 64, 1, 1, 1}, 0.979}, {{64, 64, 1, 1, 1, true}, 1.059}, {{64, 128, 1, 1, 1}, 0.920},
  {{64, 128, 1, 1, 1, true}, 1.049}, {{64, 128, 1, 1, 2}, 0.999}, {{64, 128, 2, 1, 2}, 0.995},
  {{64, 128, 2, 2, 2, true}, 1.086}, {{64, 128, 4, 1, 1}, 0.977}, {{64, 128, 4, 1, 1, true}, 1.036},
  {{64, 192, 2, 1, 1}, 0.989}, {{64, 192, 4, 1, 1}, 0.994}, {{64, 192, 4, 1, 1, true}, 0.990},
  {{64, 256, 1, 1, 4}, 1.022}, {{128, 64, 1, 1, 1}, 0.956}, {{128, 64, 1, 4, 1}, 1.003},
  {{128, 128, 1, 1, 1}, 0.964}, {{128, 128, 1, 1, 1, true}, 1.054}, {{128, 128, 1, 2, 1}, 0.970},
  {{128, 128, 2, 1, 1}, 0.950}, {{128, 128, 2, 2, 1}, 0.989}, {{128, 128, 2, 2, 2, true}, 1.054},
  {{128, 128, 4, 1, 1}, 0.938}, {{128, 128, 4, 1, 1, true}, 0.960}, {{128, 192, 2, 1, 1}, 0.994},
  {{128, 192, 2, 1, 1, true}, 0.976}, {{128, 256, 1, 1, 1}, 1.028}, {{128, 256, 1, 1, 1, true}, 1.062},
  {{128, 256, 1, 2, 1}, 0.998}, {{128, 256, 2, 1, 1}, 1.017}, {{128, 256, 2, 1, 1, true}, 0.972},
  {{192, 64, 1, 4, 1}, 0.986}, {{192, 128, 1, 2, 1}, 1.006}, {{192, 128, 1, 2, 1, true}, 0.999},
  {{192, 128, 2, 1, 1}, 0.985}, {{192, 128, 2, 1, 1, true}, 1.008}, {{192, 192, 1, 2, 1}, 1.037},
  {{192, 192, 1, 2, 1, true}, 1.021}, {{192, 192, 2, 1, 1, true}, 1.001},
};
// clang-format on

double kernel_factor(const Plan& plan) {
  for (const KernelFactor& factor : kKernelFactors)
    if (factor.plan == plan) return factor.times;
  return 1;
}

/// How often compute hands columns of a tile to the storer; see Shape::kStagedN.
int pieces(const Plan& plan) {
  const int own_n = plan.tile_n / plan.cluster_k;
  return own_n / (own_n % kWidePiece > 0 ? kWidePiece / 2 : kWidePiece);
}

double straddle(int row_length) { return row_length % kLine > 0 ? kStraddleFactor : 1; }

/// The K steps of a plan. Tensor cores, L2 and memory work at the same time, and each waits for the others
/// now and then: together they take longer than the slowest and less than the sum. The root of the sum of
/// squares is that, and fits better than either.
double steps_us(const ladder::Shape& shape, const Estimate& estimate, double memory_bytes_per_us) {
  const Plan& plan = estimate.plan;
  // SMs that have no tile in the last wave leave the others more of what all SMs share: bandwidth and, at
  // the power limit, the clock.
  const double full_waves = double(estimate.clusters) / estimate.resident_clusters;
  const double tiles = full_waves + kIdleFactor * (estimate.waves - full_waves),
               steps = tiles * estimate.k_steps;

  // A block's TMA asks L2 for one line after the other. Blocks of a cluster that share A or B ask for fewer.
  const double m = shape.m, n = shape.n, k = shape.k;
  const double straddle_k = straddle(shape.k), straddle_n = straddle(shape.n);
  const int high = ladder::tiles_over(shape.m, plan.tile_m * plan.cluster_m) * plan.cluster_m,
            wide = ladder::tiles_over(shape.n, plan.tile_n * plan.cluster_n) * plan.cluster_n;
  // Where one row of clusters does, the blocks with rows of A load whole chunks of 8.
  const double a_rows = high == plan.cluster_m
                            ? std::min(plan.tile_m / plan.cluster_n, 8 * ladder::tiles_over(shape.m, 8))
                            : m / high / plan.cluster_n;
  const double rows = a_rows * straddle_k + n / wide / plan.cluster_m * straddle_n;
  const double load_us = kLoadUs * rows / (128 + 256);

  // Warpgroups without rows of A compute nothing.
  const double used = std::min(64.0 * ladder::tiles_over(shape.m, 64) / plan.tile_m, 1.0);
  const double step_us = used * kTensorUs * (plan.blocks() > 1 ? kClusterFactor : 1) *
                         (plan.tile_n == kNarrowTile ? kNarrowFactor : 1);
  const double tensor_us =
      steps * step_us * (plan.tile_m * plan.tile_n) / (128 * 256) + tiles * kPieceUs * pieces(plan);
  // Where rows of C do not begin with a cache line, clusters beside each other write to the same lines.
  const double shared_lines = shape.n % kLine > 0 ? m * (wide / plan.cluster_n) : 0;
  const double bytes = 2 * (m * k + k * n + m * n + kSharedLineFactor * kLine * shared_lines);
  const double memory_us = kMemoryFactor * bytes / memory_bytes_per_us;
  return kFillSteps * load_us + std::hypot(tensor_us, steps * load_us, memory_us);
}

/// What blocks do together.
double together_us(const Estimate& estimate) {
  const Plan& plan = estimate.plan;
  double us = 0;
  if (plan.cluster_k > 1) us += std::max(1.0, estimate.waves) * kSumUs;
  if (estimate.partials > 1) {
    // Two at a time store and read, as often as it takes to come from all to one.
    const int meetings = std::bit_width(unsigned(estimate.partials - 1));
    us += kStreamKUs + 2 * meetings * kFixUpUs * (plan.tile_m * plan.tile_n) / (128 * 256 * plan.cluster_k);
  }
  return us;
}

Estimate estimate_of(const ladder::Shape& shape, const Candidate& candidate, double memory_bytes_per_us) {
  const auto& [plan, resident] = candidate;
  const int k_steps = ladder::tiles_over(shape.k, kStepK);
  Estimate estimate;
  estimate.plan = plan;
  estimate.resident_clusters = resident;
  estimate.clusters = ladder::tiles_over(shape.m, plan.tile_m * plan.cluster_m) *
                      ladder::tiles_over(shape.n, plan.tile_n * plan.cluster_n);
  estimate.waves = ladder::tiles_over(estimate.clusters, resident);
  estimate.k_steps = ladder::tiles_over(k_steps, plan.cluster_k);
  if (const Sharing sharing =
          plan.stream_k ? share_last_wave(estimate.clusters, resident, k_steps) : Sharing();
      sharing.tiles > 0) {
    estimate.waves = estimate.clusters / resident + double(sharing.part(k_steps)) / k_steps;
    estimate.partials = sharing.contributors();
  }
  estimate.us = kernel_factor(plan) *
                (kLaunchUs + steps_us(shape, estimate, memory_bytes_per_us) + together_us(estimate));
  return estimate;
}

}  // namespace

std::string why_none_is_shared(int tiles, int clusters, int k_steps) {
  if (k_steps < 2 * kMinSteps) return fmt::format("K has fewer than {} steps of {}", 2 * kMinSteps, kStepK);
  if (clusters == 1) return "there is room for one cluster at a time";
  if (tiles % clusters == 0) return fmt::format("{} tiles fill every wave of {} clusters", tiles, clusters);
  return fmt::format("the last wave, {} of {} clusters, is nearly full", tiles % clusters, clusters);
}

std::string Plan::tile() const { return fmt::format("{}x{}", tile_m, tile_n); }

std::string Plan::name() const {
  std::string name = tile();
  if (blocks() > 1) name += fmt::format(", cluster {}x{}x{}", cluster_m, cluster_n, cluster_k);
  return stream_k ? name + ", stream-K" : name;
}

std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Candidate>& candidates,
                                double memory_bytes_per_us) {
  const int k_steps = ladder::tiles_over(shape.k, kStepK);
  const bool has_whole = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    return !candidate.plan.stream_k && candidate.plan.cluster_k <= k_steps;
  });
  std::vector<Estimate> result;
  result.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    if (k_steps < candidate.plan.cluster_k) continue;
    const Estimate estimate = estimate_of(shape, candidate, memory_bytes_per_us);
    // A kernel that could share tiles, but shares none, is left out, even one without a twin for whole tiles:
    // the fit knows no such runs. At a few recorded shapes one was fastest (docs/decisions.md).
    if (candidate.plan.stream_k && estimate.partials == 1 && has_whole) continue;
    result.push_back(estimate);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.us < b.us; });
  return result;
}

std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates) {
  std::ostringstream text;
  text << shape.name() << ": " << estimates.front().plan.name()
       << ", predicted fastest by a model of H100 and H200.\n";
  ladder::Table table(text, {{"tile, and cluster (M x N x K)", 33, false},
                             {"clusters", 8},
                             {"resident", 8},
                             {"waves", 6},
                             {"K steps", 7},
                             {"partials", 8},
                             {"predicted us", 12}});
  table.header();
  for (const Estimate& estimate : estimates)
    table.row({estimate.plan.name(), std::to_string(estimate.clusters),
               std::to_string(estimate.resident_clusters),
               ladder::fixed(estimate.waves, estimate.partials > 1 ? 2 : 0), std::to_string(estimate.k_steps),
               std::to_string(estimate.partials), ladder::fixed(estimate.us, 1)});
  return text.str();
}

}  // namespace lesson06::any_shape
