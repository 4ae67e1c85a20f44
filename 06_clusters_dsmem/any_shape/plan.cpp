/// @file
/// Chooses by waves: which tiles fill the GPU a whole number of times, and what their steps cost.
#include "06_clusters_dsmem/any_shape/plan.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <tuple>

#include "common/device/tile_shape.cuh"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson06::any_shape {
namespace {

using ladder::tiles_over;

constexpr int kHeights[] = {64, 128, 192, 256};
constexpr int kLine = 64;    ///< elements of a cache line
constexpr int kSector = 16;  ///< and of a sector, of which a line has four

// What the parts of a kernel cost, in microseconds. docs/parts.md has measured them alone; these are what
// they cost together, in the_plan.md's runs.
constexpr double kLaunch = 1.24;
constexpr double kMeet = 0.09;        ///< for each block of a cluster, whose blocks meet before they begin
constexpr double kClock = 0.67e-3;    ///< of the tensor cores, which power slows down
constexpr double kRequest = 1.39e-3;  ///< to ask L2 for a row of 128 bytes
constexpr double kReceive = 0.32e-3;  ///< to receive a row, whoever asked for it
constexpr double kMerged = 0.46;      ///< part of a whole line that L2 need not send for one more asker
constexpr double kMidSector = 2.1;    ///< times as much for a row that begins within a sector of 32 bytes
constexpr double kTrip = 0.97;        ///< from a request to its bytes
constexpr double kFillSteps = 2.3;    ///< the K steps whose requests nothing hides
constexpr double kStage = 0.76;       ///< to hand over columns of a tile, while tensor cores wait
constexpr double kIdle = 0.64;   ///< what an SM without a tile in the last wave costs, over one with a tile
constexpr double kMemory = 1.1;  ///< bytes of A, B and C over what the memory's bandwidth says
constexpr double kSharedLine = 0.3;   ///< lines more for each line of C that two clusters write to
constexpr double kHalfSectors = 9.7;  ///< more to store 128x256 of C in rows that begin within a sector
constexpr double kSum = 2.0;          ///< a tile's partial sums, through DSMEM
constexpr double kFixUp = 2.8;        ///< a tile's partial sums, to global memory or from it
constexpr double kStreamK = 2.2;      ///< more for a launch that splits tiles

/// How much slower a step is where blocks of a cluster wait for each other, or four warpgroups take turns.
double factor_of(const Plan& plan) {
  constexpr double kShared = 1.04, kFourWarpgroups = 1.08;
  return (plan.cluster_m > 1 ? kShared : 1) * (plan.cluster_n > 1 ? kShared : 1) *
         (plan.walked().tile_m == 256 ? kFourWarpgroups : 1);
}

/// What it costs to ask for a row of 128 bytes, on average over rows that begin at multiples of so many
/// elements, where about so many blocks ask for the same rows at a time. L2 merges the requests for a whole
/// line that meet there, unless they are multicast already.
double row_factor(int multiple, double askers, bool multicast) {
  const int places = kLine / std::gcd(multiple, kLine);  // in a line that a row may begin at
  const double whole = 1.0 / places, mid_sector = places == 8 ? 0.5 : 0;
  return 1 - (multicast ? 0 : kMerged * (1 - 1 / askers)) * whole + (kMidSector - 1) * mid_sector;
}

/// Clocks of the tensor cores for a K step: those of the products, or of reading A and B from shared memory.
double step_clocks(int warpgroups, int tile_n) {
  return warpgroups * 4 * std::max(tile_n / 2.0, 16 + tile_n / 4.0);
}

/// Rows of 128 bytes of a tile of B, on average over `wide` tiles beside each other: only panels that reach
/// into B are loaded, one at least.
double rows_of_b(int n, int tile_n, int wide) {
  const int whole = n / tile_n, rest = n % tile_n;
  const int panels = whole * tiles_over(tile_n, 64) + (rest > 0 ? tiles_over(rest, 64) : 0);
  return 64.0 * (panels + wide - whole - (rest > 0)) / wide;
}

/// The columns of C that a block completes. Blocks that split K divide a tile's columns, or with swapped
/// operands its rows.
int own_columns(const Plan& plan) { return plan.swapped ? plan.tile_n : plan.tile_n / plan.cluster_k; }

/// The K steps of a plan. Tensor cores, requests to L2, trips and memory limit it at the same time, and one
/// waits for the other now and then: together they take a little longer than the slowest. The fourth root of
/// the sum of fourth powers is that.
double steps_us(const ladder::Shape& shape, const Estimate& estimate, double memory_bytes_per_us) {
  const Plan &plan = estimate.plan, walked = plan.walked();
  const double m = shape.m, n = shape.n, k = shape.k;
  const int high = tiles_over(shape.m, plan.tile_m * plan.cluster_m) * plan.cluster_m,
            wide = tiles_over(shape.n, plan.tile_n * plan.cluster_n) * plan.cluster_n;
  // SMs that have no tile in the last wave leave the others more of what all SMs share.
  const double full_waves = double(estimate.clusters) / estimate.resident_clusters;
  const double tiles = full_waves + kIdle * (estimate.waves - full_waves), steps = tiles * estimate.k_steps;

  const int walked_rows = plan.swapped ? shape.n : shape.m, walked_columns = plan.swapped ? shape.m : shape.n;
  const int warpgroups = std::min(tiles_over(walked_rows, 64), walked.tile_m / 64);
  const Ring ring = ring_of(plan);
  const double products = steps * step_clocks(warpgroups, walked.tile_n) * kClock * factor_of(plan) +
                          tiles * kStage * tiles_over(walked.tile_n / plan.cluster_k, ring.staged_n);

  // Tiles at work at a time, as the walk visits them: those of a row of tiles ask for the same rows of its A.
  constexpr int kGroup = 16;
  const double below = std::min(tiles_over(walked_rows, walked.tile_m), kGroup),
               at_a_time = estimate.resident_clusters * plan.cluster_m * plan.cluster_n,
               beside = std::min(1.0 * tiles_over(walked_columns, walked.tile_n),
                                 std::max(1.0, at_a_time / below));
  const auto askers = [](double tiles_at_work, int receivers) {
    return std::max(1.0, tiles_at_work / receivers);
  };
  const double a_factor = row_factor(shape.k, askers(plan.swapped ? below : beside, plan.cluster_n),
                                     plan.cluster_n > 1),
               b_factor =
                   row_factor(wide > 1 ? std::gcd(shape.n, plan.tile_n) : shape.n,
                              askers(plan.swapped ? beside : below, plan.cluster_m), plan.cluster_m > 1);
  const double a_rows = std::min(plan.tile_m, 8 * tiles_over(shape.m, 8)),
               b_rows = rows_of_b(shape.n, plan.tile_n, wide);
  const double a_asked = high == plan.cluster_m ? std::min<double>(plan.tile_m / plan.cluster_n, a_rows)
                                                : m / high / plan.cluster_n;
  const double load =
      kRequest * (a_factor * a_asked + b_factor * b_rows / plan.cluster_m) + kReceive * (a_rows + b_rows);
  const double requests = steps * load;

  const double trips = steps * kTrip / (ring.slots - 1);
  const int own_n = own_columns(plan);
  const bool shares_lines = shape.n % kLine > 0 || (own_n % kLine > 0 && own_n < shape.n);
  const double shared_lines = shares_lines ? m * (wide / plan.cluster_n) : 0;
  const double memory =
      kMemory * 2 * (m * k + k * n + m * n + kSharedLine * kLine * shared_lines) / memory_bytes_per_us;
  double powers = 0;
  for (const double part : {products, requests, trips, memory}) powers += std::pow(part, 4);
  return kFillSteps * load + std::pow(powers, 0.25);
}

/// What blocks do together.
double together_us(const Estimate& estimate) {
  const Plan& plan = estimate.plan;
  const double tile = plan.tile_m * plan.tile_n / (128 * 256.0);
  double us = 0;
  if (plan.cluster_k > 1) us += std::max(1.0, estimate.waves) * kSum * tile;
  if (estimate.partials > 1) {
    // Two at a time store and read, as often as it takes to come from all to one.
    const int meetings = std::bit_width(unsigned(estimate.partials - 1));
    us += kStreamK + 2 * meetings * kFixUp * tile / plan.cluster_k;
  }
  return us;
}

/// What it takes longer to store the last tile, with no products beside it, where C's rows begin with a
/// sector and those of a block's columns within one: two blocks write half of it each. Columns of swapped
/// operands come in whole lines. Where C's own rows begin within sectors, a wider tile was not faster.
double half_sectors_us(const ladder::Shape& shape, const Plan& plan) {
  const int own_n = own_columns(plan);
  const bool writes_halves = shape.n % kSector == 0 && own_n % kSector > 0 && own_n < shape.n;
  return writes_halves ? kHalfSectors * plan.tile_m * own_n / (128 * 256.0) : 0;
}

Estimate estimate_of(const ladder::Shape& shape, const Plan& plan, int resident, double memory_bytes_per_us) {
  const int k_steps = tiles_over(shape.k, kStepK);
  Estimate estimate;
  estimate.plan = plan;
  estimate.resident_clusters = resident;
  estimate.clusters =
      tiles_over(shape.m, plan.tile_m * plan.cluster_m) * tiles_over(shape.n, plan.tile_n * plan.cluster_n);
  estimate.waves = tiles_over(estimate.clusters, resident);
  estimate.k_steps = tiles_over(k_steps, plan.cluster_k);
  if (const Sharing sharing =
          plan.stream_k ? share_last_wave(estimate.clusters, resident, k_steps) : Sharing();
      sharing.tiles > 0) {
    estimate.waves = estimate.clusters / resident + double(sharing.part(k_steps)) / k_steps;
    estimate.partials = sharing.contributors();
  }
  estimate.useful =
      double(shape.m) * shape.n * k_steps /
      (estimate.waves * resident * plan.blocks() * plan.tile_m * plan.tile_n * estimate.k_steps);
  estimate.us = kLaunch + (plan.blocks() > 1 ? kMeet * plan.blocks() : 0) +
                steps_us(shape, estimate, memory_bytes_per_us) + half_sectors_us(shape, plan) +
                together_us(estimate);
  return estimate;
}

}  // namespace

bool is_possible(const Plan& plan) {
  const auto is_one_of = [](int value, auto... values) { return ((value == values) || ...); };
  const Plan walked = plan.walked();
  return is_one_of(walked.tile_m, 64, 128, 192, 256) && is_one_of(plan.cluster_m, 1, 2, 4) &&
         is_one_of(plan.cluster_n, 1, 2, 4) && plan.cluster_k >= 1 && plan.cluster_k <= kMinSteps &&
         plan.blocks() <= kMaxBlocks && plan.tile_m % (8 * plan.cluster_n) == 0 && walked.tile_n > 0 &&
         walked.tile_n % (8 * plan.cluster_k) == 0 && walked.tile_n <= widest_tile(walked.tile_m) &&
         ring_of(plan).slots > 2;
}

namespace {

/// Adds the plans by waves. All is as the kernel's walk sees it: with swapped operands that of C transposed.
/// Where nobody asks for these, tiles whose rows are a multiple of 64 are left to plans without.
void add_plans(std::vector<Plan>& plans, const ladder::Shape& shape, const Gpu& gpu, const Fixed& fixed,
               bool swapped) {
  const bool in_eights_only = swapped && !fixed.swapped;
  const auto allows = [](const auto& knob, auto value) { return !knob || *knob == value; };
  for (const int height : kHeights) {
    if (!allows(fixed.tile_m, height)) continue;
    for (const int m : {1, 2, 4})
      for (const int n : {1, 2, 4})
        for (const int k : {1, 2, 3, 4}) {
          const Plan cluster{height, 8 * k, m, n, k};
          if (!allows(fixed.cluster_m, m) || !allows(fixed.cluster_n, n) || !allows(fixed.cluster_k, k) ||
              cluster.blocks() > kMaxBlocks || gpu.resident[cluster.blocks()] == 0)
            continue;
          std::vector<int> widths;
          if (!in_eights_only) widths = {64, 128, 192, 256};
          const auto add = [&](int least, int step) {
            const int width = step * tiles_over(least, step);
            if (std::find(widths.begin(), widths.end(), width) == widths.end()) widths.push_back(width);
          };
          const int step = 8 * (swapped ? std::lcm(k, m) : k);  // these blocks load equal parts of A's rows
          // Where rows of B and C begin with a sector, those of a block's columns may do so as well.
          const bool in_sectors = !swapped && shape.n % kSector == 0;
          for (const double waves : {0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0}) {
            const int across = static_cast<int>(waves * gpu.resident[cluster.blocks()]) /
                               tiles_over(shape.m, height * m);  // clusters beside each other
            if (across == 0) continue;
            const int narrowest = tiles_over(shape.n, across * n);
            add(narrowest, step);
            if (in_sectors) add(narrowest, kSector * k);
          }
          if (fixed.tile_n) widths = {*fixed.tile_n};
          for (const int width : widths) {
            // More blocks than there are tiles along an edge would have nothing to do.
            const bool too_large = (m > tiles_over(shape.m, height) || n > tiles_over(shape.n, width)) &&
                                   !fixed.cluster_m && !fixed.cluster_n;
            Plan plan = Plan{height, width, m, n, k, false, swapped}.walked();
            if ((in_eights_only && width % 64 == 0) || too_large || !is_possible(plan)) continue;
            for (const bool stream_k : {false, true}) {
              plan.stream_k = stream_k;
              if (allows(fixed.stream_k, stream_k)) plans.push_back(plan);
            }
          }
        }
  }
}

}  // namespace

std::vector<Plan> plans_by_waves(const ladder::Shape& shape, const Gpu& gpu, const Fixed& fixed) {
  std::vector<Plan> plans;
  if (!fixed.swapped.value_or(false)) add_plans(plans, shape, gpu, fixed, false);
  const Fixed transposed{fixed.tile_n,    fixed.tile_m,   fixed.cluster_n, fixed.cluster_m,
                         fixed.cluster_k, fixed.stream_k, fixed.swapped};
  if (fixed.swapped.value_or(true)) add_plans(plans, {shape.n, shape.m, shape.k}, gpu, transposed, true);
  return plans;
}

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
  return name + (stream_k ? ", stream-K" : "") + (swapped ? ", swapped" : "");
}

std::vector<Estimate> estimates(const ladder::Shape& shape, const std::vector<Plan>& plans, const Gpu& gpu,
                                int spare_sms) {
  const int k_steps = tiles_over(shape.k, kStepK);
  const auto can_run = [&](const Plan& plan) {
    return gpu.resident[plan.blocks()] > 0 && plan.cluster_k <= k_steps;
  };
  const bool has_whole = std::any_of(plans.begin(), plans.end(),
                                     [&](const Plan& plan) { return !plan.stream_k && can_run(plan); });
  std::vector<Estimate> result;
  result.reserve(plans.size());
  for (const Plan& plan : plans) {
    if (!can_run(plan)) continue;
    const int resident = clusters_beside(spare_sms, plan.blocks(), gpu.resident[plan.blocks()]);
    const Estimate estimate = estimate_of(shape, plan, resident, gpu.memory_bytes_per_us);
    if (plan.stream_k && estimate.partials == 1 && has_whole) continue;
    result.push_back(estimate);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.us < b.us; });
  return result;
}

std::vector<Estimate> varied(const std::vector<Estimate>& estimates) {
  constexpr int kOfATile = 2;
  std::map<std::tuple<int, int, bool>, int> seen;
  std::vector<Estimate> first, later;
  for (const Estimate& estimate : estimates) {
    const Plan& plan = estimate.plan;
    const int place = ++seen[{plan.tile_m, plan.tile_n, plan.swapped}];
    (place <= kOfATile ? first : later).push_back(estimate);
  }
  first.insert(first.end(), later.begin(), later.end());
  return first;
}

std::string explanation(const ladder::Shape& shape, const std::vector<Estimate>& estimates) {
  constexpr size_t kShown = 16;
  std::ostringstream text;
  text << shape.name() << ": " << estimates.front().plan.name() << ", predicted fastest of "
       << estimates.size() << " plans by waves.\n";
  ladder::Table table(text, {{"tile, and cluster (M x N x K)", 41, false},
                             {"clusters", 8},
                             {"resident", 8},
                             {"waves", 5},
                             {"useful", 6},
                             {"K steps", 7},
                             {"sums", 4},
                             {"us", 7}});
  table.header();
  for (size_t i = 0; i < std::min(kShown, estimates.size()); ++i) {
    const Estimate& estimate = estimates[i];
    table.row({estimate.plan.name(), std::to_string(estimate.clusters),
               std::to_string(estimate.resident_clusters),
               ladder::fixed(estimate.waves, estimate.partials > 1 ? 2 : 0),
               ladder::fixed(100 * estimate.useful, 0) + " %", std::to_string(estimate.k_steps),
               std::to_string(estimate.partials), ladder::fixed(estimate.us, 1)});
  }
  return text.str();
}

}  // namespace lesson06::any_shape
