/// @file
/// What a kernel costs: its launch, its K steps, and what blocks of a cluster do together.
#include "06_clusters_dsmem/plan.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "common/device/tile_shape.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson06 {
namespace {

constexpr int kStepK = 64;

// Microseconds on an H200, fitted by fit_plan.py to the recorded times of all plans on many shapes.

/// One K step of a block. A small tile brings more bytes for each product; blocks that share B bring fewer.
struct StepCost {
  int tile_m, tile_n;
  double alone_us, shared_us;  ///< cluster_m = 1, and more
};
constexpr StepCost kStepCosts[] = {
    {64, 128, 0.271, 0.250}, {128, 128, 0.441, 0.431}, {128, 256, 0.811, 0.801}, {256, 128, 0.828, 0.822}};
constexpr double kLaunchUs = 1.227;
constexpr double kClusterUs = 1.372;  ///< more for a launch with clusters, which meet twice
constexpr double kSumUs = 1.989;      ///< more for each tile where K is split: partial sums travel

/// Tiles of so many elements are bound by the tensor cores while all blocks run side by side, as they do in
/// the first wave: L2 then serves those that want the same at one time. Sharing pays when they have drifted
/// apart.
constexpr int kLargeTile = 128 * 256;

/// The clock that a GPU at its power limit runs large kernels at, over its highest.
constexpr double kPowerClock = 0.74;

/// A GPU at its power limit pays for products, not for time: SMs that have no tile in the last wave save
/// power, and the clock rises. So a wave costs what is in it, but at least its time at the highest clock.
double waves_to_pay(int clusters, int resident, int waves) {
  return std::max(kPowerClock * waves, double(clusters) / resident);
}

/// All K steps of all waves.
double steps_us(const Plan& plan, double waves, int k_steps) {
  for (const StepCost& cost : kStepCosts) {
    if (cost.tile_m != plan.tile_m || cost.tile_n != plan.tile_n) continue;
    if (plan.cluster_m == 1) return waves * k_steps * cost.alone_us;
    const double alone = plan.tile_m * plan.tile_n >= kLargeTile ? kPowerClock : 0;
    return k_steps * (alone * cost.alone_us + (waves - alone) * cost.shared_us);
  }
  throw std::invalid_argument("tile " + plan.tile() + ": its cost was never measured");
}

}  // namespace

std::string Plan::tile() const { return fmt::format("{}x{}", tile_m, tile_n); }

std::string Plan::name() const {
  if (blocks() == 1) return tile();
  return fmt::format("{}, cluster {}x{}", tile(), cluster_m, cluster_k);
}

std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Candidate>& candidates) {
  std::vector<Estimate> result;
  const int k_steps = ladder::tiles_over(shape.k, kStepK);
  for (const auto& [plan, resident] : candidates) {
    if (k_steps < plan.cluster_k) continue;
    Estimate estimate;
    estimate.plan = plan;
    estimate.resident_clusters = resident;
    estimate.clusters =
        ladder::tiles_over(shape.m, plan.tile_m * plan.cluster_m) * ladder::tiles_over(shape.n, plan.tile_n);
    estimate.waves = ladder::tiles_over(estimate.clusters, resident);
    estimate.k_steps = ladder::tiles_over(k_steps, plan.cluster_k);
    estimate.us = kLaunchUs +
                  steps_us(plan, waves_to_pay(estimate.clusters, resident, estimate.waves), estimate.k_steps);
    if (plan.blocks() > 1) estimate.us += kClusterUs;
    if (plan.cluster_k > 1) estimate.us += estimate.waves * kSumUs;
    result.push_back(estimate);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.us < b.us; });
  return result;
}

std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates) {
  std::ostringstream text;
  text << shape.name() << ": " << estimates.front().plan.name() << ", which is expected to be over first.\n";
  ladder::Table table(text, {{"tile, and cluster (M x K)", 25, false},
                             {"clusters of work", 16},
                             {"at one time", 11},
                             {"waves", 5},
                             {"K steps", 7},
                             {"expected us", 11}});
  table.header();
  for (const Estimate& estimate : estimates)
    table.row({estimate.plan.name(), std::to_string(estimate.clusters),
               std::to_string(estimate.resident_clusters), std::to_string(estimate.waves),
               std::to_string(estimate.k_steps), ladder::fixed(estimate.us, 1)});
  return text.str();
}

}  // namespace lesson06
