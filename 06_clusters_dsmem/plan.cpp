/// @file
/// What a kernel costs: K steps, the beginning and end of every tile, and the meetings of a cluster.
#include "06_clusters_dsmem/plan.hpp"

#include <algorithm>
#include <sstream>

#include "common/host/table.hpp"
#include "common/host/text.hpp"

namespace lesson06 {
namespace {

constexpr int kStepK = 64;

/// Cycles of one K step, from decisions/0009: small tiles bring more bytes for each product, and blocks that
/// share B bring fewer.
double step_cycles(const Plan& plan) {
  struct Cost {
    int tile_m, tile_n;
    double alone, shared;
  };
  constexpr Cost kCosts[] = {
      {64, 128, 364, 355}, {128, 128, 560, 550}, {128, 256, 1080, 1090}, {256, 128, 1090, 1100}};
  for (const Cost& cost : kCosts)
    if (cost.tile_m == plan.tile_m && cost.tile_n == plan.tile_n)
      return plan.cluster_m > 1 ? cost.shared : cost.alone;
  return 0;
}

constexpr double kTileCycles = 1500;     ///< fill the ring, drain the tensor cores, store
constexpr double kSumCycles = 2000;      ///< more where K is split: partial sums travel
constexpr double kClusterCycles = 1700;  ///< a launch with clusters, and their two meetings

int over(int extent, int tile) { return (extent + tile - 1) / tile; }

}  // namespace

std::string Plan::tile() const { return std::to_string(tile_m) + "x" + std::to_string(tile_n); }

std::string Plan::name() const {
  if (blocks() == 1) return tile();
  return tile() + ", cluster " + std::to_string(cluster_m) + "x" + std::to_string(cluster_k);
}

std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Candidate>& candidates) {
  std::vector<Estimate> result;
  const int k_steps = over(shape.k, kStepK);
  for (const auto& [plan, resident] : candidates) {
    if (k_steps < plan.cluster_k) continue;
    Estimate estimate;
    estimate.plan = plan;
    estimate.clusters = over(shape.m, plan.tile_m * plan.cluster_m) * over(shape.n, plan.tile_n);
    estimate.waves = over(estimate.clusters, resident);
    estimate.k_steps = over(k_steps, plan.cluster_k);
    const double tile =
        estimate.k_steps * step_cycles(plan) + kTileCycles + (plan.cluster_k > 1 ? kSumCycles : 0);
    estimate.cycles = estimate.waves * tile + (plan.blocks() > 1 ? kClusterCycles : 0);
    result.push_back(estimate);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.cycles < b.cycles; });
  return result;
}

std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates) {
  std::ostringstream text;
  const Estimate& best = estimates.front();
  text << shape.name() << ": " << best.plan.name() << ", because it is expected to take the fewest cycles:\n";
  ladder::Table table(text,
                      {{"plan", 20, false}, {"clusters", 9}, {"waves", 6}, {"K steps", 8}, {"cycles", 12}});
  table.header();
  for (const Estimate& estimate : estimates)
    table.row({estimate.plan.name(), std::to_string(estimate.clusters), std::to_string(estimate.waves),
               std::to_string(estimate.k_steps), ladder::fixed(estimate.cycles, 0)});
  return text.str();
}

}  // namespace lesson06
