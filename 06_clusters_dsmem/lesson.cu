/// @file
/// Lesson 06 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <fmt/core.h>
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "06_clusters_dsmem/gemm.cuh"
#include "06_clusters_dsmem/plan.hpp"
#include "common/cuda/kernel_resources.hpp"
#include "common/host/problem/requirements.hpp"
#include "common/host/problem/tuned_plans.hpp"

namespace lesson06 {
namespace {
using ladder::Settings;

/// Calls visit(Shape<...>()) for each kernel there is. 256x128 has no use for a split of K, and clusters of
/// four fit only the widest tile; the list is what is worth compiling.
template <class Visit>
void visit_shapes(const Visit& visit) {
  visit(Shape<128, 256, 1, 1>());
  visit(Shape<128, 256, 2, 1>());
  visit(Shape<128, 256, 4, 1>());
  visit(Shape<128, 256, 1, 2>());
  visit(Shape<128, 256, 1, 4>());
  visit(Shape<256, 128, 1, 1>());
  visit(Shape<256, 128, 2, 1>());
  visit(Shape<128, 128, 1, 1>());
  visit(Shape<128, 128, 2, 1>());
  visit(Shape<128, 128, 1, 2>());
  visit(Shape<128, 128, 2, 2>());
  visit(Shape<64, 128, 1, 1>());
  visit(Shape<64, 128, 2, 1>());
  visit(Shape<64, 128, 1, 2>());
  visit(Shape<64, 128, 2, 2>());
}

template <class S>
constexpr Plan plan_of(S) {
  return {S::kTile.m, S::kTile.n, S::kClusterM, S::kClusterK};
}

/// All kernels, and how many of their clusters this GPU holds. Asked once: the answer costs microseconds.
const std::vector<Candidate>& all_candidates() {
  static const std::vector<Candidate> candidates = [] {
    std::vector<Candidate> all;
    visit_shapes([&]<class S>(S shape) {
      all.push_back({plan_of(shape),
                     ladder::resident_clusters(gemm<S>, S::kThreads, sizeof(SharedStorage<S>), S::kBlocks)});
    });
    return all;
  }();
  return candidates;
}

int spare_sms(const Settings& settings) { return std::stoi(settings.at("spare_sms")); }

/// Do the settings leave the choice of this plan open?
bool allow(const Settings& settings, const Plan& plan) {
  const auto allows = [&](const char* knob, const std::string& value) {
    return settings.at(knob) == "auto" || settings.at(knob) == value;
  };
  return allows("tile", plan.tile()) && allows("cluster_m", std::to_string(plan.cluster_m)) &&
         allows("cluster_k", std::to_string(plan.cluster_k));
}

/// What the settings leave open, the cheapest first. @throws std::invalid_argument if there is no such kernel
std::vector<Estimate> open_plans(const ladder::Shape& shape, const Settings& settings) {
  std::vector<Candidate> open;
  for (Candidate candidate : all_candidates()) {
    const Plan& plan = candidate.plan;
    candidate.resident_clusters =
        clusters_beside(spare_sms(settings), plan.blocks(), candidate.resident_clusters);
    if (allow(settings, plan)) open.push_back(candidate);
  }
  if (open.empty())
    throw std::invalid_argument("--cluster_m " + settings.at("cluster_m") + " --cluster_k " +
                                settings.at("cluster_k") + ": not compiled for --tile " +
                                settings.at("tile") +
                                "; 128x256 has 1x1, 2x1, 4x1, 1x2, 1x4, 256x128 has 1x1, 2x1, the others "
                                "1x1, 2x1, 1x2, 2x2");
  std::vector<Estimate> result = estimates(shape, open);
  if (result.empty())
    throw std::invalid_argument(
        fmt::format("--cluster_k {}: k = {} has fewer steps of 64 than blocks to split it",
                    settings.at("cluster_k"), shape.k));
  return result;
}

/// The plan that `ladder tune` found fastest on the whole GPU, if the settings leave all open and it can run.
std::optional<Estimate> remembered_plan(const ladder::Shape& shape, const Settings& settings,
                                        const std::vector<Estimate>& open) {
  if (spare_sms(settings) > 0) return {};
  const auto tuned = ladder::with_remembered_plan(lesson().name, shape, settings);
  if (!tuned) return {};
  const auto found = std::find_if(open.begin(), open.end(),
                                  [&](const Estimate& estimate) { return allow(*tuned, estimate.plan); });
  return found == open.end() ? std::nullopt : std::optional<Estimate>(*found);
}

/// The remembered plan, else the one that is expected to be the fastest.
Estimate chosen_plan(const ladder::Shape& shape, const Settings& settings) {
  const std::vector<Estimate> open = open_plans(shape, settings);
  return remembered_plan(shape, settings, open).value_or(open.front());
}

std::string explain(const ladder::Shape& shape, const Settings& settings) {
  const std::vector<Estimate> open = open_plans(shape, settings);
  const std::string model = explanation(shape, open);
  const std::optional<Estimate> remembered = remembered_plan(shape, settings, open);
  if (!remembered) return model;
  return fmt::format("{}: {}, remembered from `ladder tune`. Without that:\n{}", shape.name(),
                     remembered->plan.name(), model);
}

/// The open plans as settings, for `ladder tune`.
std::vector<Settings> candidates(const ladder::Shape& shape, const Settings& settings) {
  std::vector<Settings> all;
  for (const Estimate& estimate : open_plans(shape, settings)) {
    Settings plan = settings;
    plan["tile"] = estimate.plan.tile();
    plan["cluster_m"] = std::to_string(estimate.plan.cluster_m);
    plan["cluster_k"] = std::to_string(estimate.plan.cluster_k);
    all.push_back(plan);
  }
  return all;
}

ladder::Shape shape_of(const Gemm& p) { return {p.m, p.n, p.k}; }

void check(const Gemm& p, const Settings& settings) {
  ladder::require_tma(p, settings);
  open_plans(shape_of(p), settings);
}

/// What is over soon gains from beginning before the launch before it has ended. Longer kernels run at the
/// power limit, where the pause between two launches is no loss: the GPU cools.
bool begins_early(const Estimate& estimate, const Settings& settings) {
  constexpr double kSoonUs = 50;
  if (settings.at("begins") != "auto") return settings.at("begins") == "early";
  return estimate.us < kSoonUs;
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  ladder::require_tma(p, settings);
  const Estimate estimate = chosen_plan(shape_of(p), settings);
  const Plan& plan = estimate.plan;
  const Order order{std::max(1, std::stoi(settings.at("group")) / plan.cluster_m),
                    begins_early(estimate, settings), spare_sms(settings)};
  visit_shapes([&]<class S>(S shape) {
    if (plan_of(shape) == plan) launch_gemm<S>(p, order, stream);
  });
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "06_clusters_dsmem",
      .idea = "Blocks of a cluster share tiles by multicast, and add up partial sums in each other's memory.",
      .knobs = {ladder::wgmma_knob(),
                {"tile",
                 "of C, in one block; auto is what is expected to be over first",
                 {"auto", "128x256", "256x128", "128x128", "64x128"}},
                {"cluster_m", "blocks that share tiles of B", {"auto", "1", "2", "4"}},
                {"cluster_k", "blocks that split K", {"auto", "1", "2", "4"}},
                {"begins",
                 "after the launch before it, or early: before that has ended",
                 {"auto", "after", "early"}},
                {"spare_sms", "multiprocessors left to other kernels", {"0", "4", "8", "16", "32"}},
                ladder::group_knob()},
      .rungs = {{"clusters, by plan", {{"begins", "after"}}},
                {"clusters, early begin", {{"begins", "early"}}}},
      .builds_on = {"05_ws_double_buffer"},
      .minimum_compute_capability = 90,
      .check = check,
      .launch = launch,
      .choice = [](const ladder::Shape& shape,
                   const Settings& settings) { return chosen_plan(shape, settings).plan.name(); },
      .explain = explain,
      .candidates = candidates,
      // For small problems the plan, which is an H200's, has no clusters.
      .cpu_rows = {{{"cluster_m", "2"}}, {{"cluster_k", "2"}}, {{"cluster_m", "2"}, {"cluster_k", "2"}}}};
  return lesson;
}

}  // namespace lesson06
