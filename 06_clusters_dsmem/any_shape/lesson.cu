/// @file
/// Lesson 06 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <fmt/core.h>
#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "06_clusters_dsmem/any_shape/candidates.hpp"
#include "06_clusters_dsmem/any_shape/gemm.cuh"
#include "06_clusters_dsmem/any_shape/kernels.cuh"
#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "06_clusters_dsmem/any_shape/workspace.hpp"
#include "common/cuda/error.hpp"
#include "common/cuda/residency.hpp"
#include "common/device/epilogue_functors.cuh"
#include "common/host/problem/epilogues.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"
#include "common/host/problem/tuned_plans.hpp"

namespace lesson06::any_shape {
namespace {
using ladder::Settings;

template <class S>
constexpr Plan plan_of(S) {
  return {S::kTile.m, S::kTile.n, S::kClusterM, S::kClusterN, S::kClusterK, S::kStreamK};
}

/// Whether a kernel is compiled with other epilogues than none: each of these doubles what a compiler has to
/// do.
constexpr bool takes_epilogues(const Plan& plan) {
  constexpr Plan kThese[] = {{128, 256, 2, 1, 1},
                             {64, 128, 1, 1, 1},
                             {64, 128, 1, 1, 2},
                             {64, 128, 1, 1, 1, true},
                             {64, 128, 4, 1, 1, true}};
  return std::find(std::begin(kThese), std::end(kThese), plan) != std::end(kThese);
}

int current_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

int spare_sms(const Settings& settings) { return std::stoi(settings.at("spare_sms")); }

bool has_epilogue(const Plan& plan, const Settings& settings) {
  return settings.at("epilogue") == "none" || takes_epilogues(plan);
}

/// Do the settings leave the choice of this plan open?
bool allow(const Settings& settings, const Plan& plan) {
  const auto allows = [&](const char* knob, const std::string& value) {
    return settings.at(knob) == "auto" || settings.at(knob) == value;
  };
  return has_epilogue(plan, settings) && allows("tile", plan.tile()) &&
         allows("cluster_m", std::to_string(plan.cluster_m)) &&
         allows("cluster_n", std::to_string(plan.cluster_n)) &&
         allows("cluster_k", std::to_string(plan.cluster_k)) &&
         allows("stream_k", plan.stream_k ? "on" : "off");
}

/// "128x256; 128x256, cluster 2x1x1" and so on: the kernels with this epilogue.
std::string kernels(const Settings& settings) {
  std::string list;
  for (const auto& [plan, resident] : all_candidates())
    if (has_epilogue(plan, settings)) list += (list.empty() ? "" : "; ") + plan.name();
  return list;
}

/// "--tile 64x128 --cluster_m 2": the knobs of a plan that are not left to the lesson.
std::string asked_for(const Settings& settings) {
  std::string words;
  for (const char* const knob : {"tile", "cluster_m", "cluster_n", "cluster_k", "stream_k", "epilogue"})
    if (const std::string& value = settings.at(knob); value != "auto" && value != "none")
      words += fmt::format("{}--{} {}", words.empty() ? "" : " ", knob, value);
  return words;
}

/// What the settings leave open, the cheapest first. @throws std::invalid_argument if there is no such kernel
std::vector<Estimate> open_plans(const ladder::Shape& shape, const Settings& settings) {
  std::vector<Candidate> open;
  std::string too_large;  // clusters for which this GPU has no room
  for (Candidate candidate : all_candidates()) {
    const Plan& plan = candidate.plan;
    if (candidate.resident_clusters == 0) {
      if (allow(settings, plan)) too_large = plan.name();
      continue;
    }
    candidate.resident_clusters =
        clusters_beside(spare_sms(settings), plan.blocks(), candidate.resident_clusters);
    if (allow(settings, plan)) open.push_back(candidate);
  }
  if (open.empty() && !too_large.empty())
    throw std::invalid_argument(
        fmt::format("{}: this GPU has no room for one cluster of {}", asked_for(settings), too_large));
  if (open.empty())
    throw std::invalid_argument(
        fmt::format("{}: no such kernel is compiled; there are {}", asked_for(settings), kernels(settings)));
  std::vector<Estimate> result = estimates(shape, open, memory_bytes_per_us());
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

/// What a shape and its settings come to.
struct Choice {
  std::vector<Estimate> open;  ///< see open_plans()
  std::optional<Estimate> remembered;

  const Estimate& estimate() const { return remembered ? *remembered : open.front(); }
};
Choice choose(const ladder::Shape& shape, const Settings& settings) {
  Choice choice{open_plans(shape, settings), {}};
  choice.remembered = remembered_plan(shape, settings, choice.open);
  return choice;
}

std::string choice(const ladder::Shape& shape, const Settings& settings) {
  const Choice choice = choose(shape, settings);
  return choice.estimate().plan.name() + (choice.remembered ? ", tuned" : "");
}

std::string explain(const ladder::Shape& shape, const Settings& settings) {
  const Choice choice = choose(shape, settings);
  const std::string model = explanation(shape, choice.open);
  if (!choice.remembered) return model;
  return fmt::format("{}: {}, remembered from `ladder tune`. Without that:\n{}", shape.name(),
                     choice.estimate().plan.name(), model);
}

/// What stream-K does, of which neither the name of the plan nor the result says anything.
std::string remark(const ladder::Shape& shape, const Settings& settings) {
  const int k_steps = ladder::tiles_over(shape.k, kStepK);
  const auto shared_by = [&](const Estimate& estimate) {
    return estimate.plan.stream_k
               ? share_last_wave(estimate.clusters, estimate.resident_clusters, k_steps).tiles
               : 0;
  };
  const Choice choice = choose(shape, settings);
  const Estimate& chosen = choice.estimate();
  if (const int shared = shared_by(chosen))
    return fmt::format("stream-K: {} of {} tiles {} shared by clusters", shared, chosen.clusters,
                       shared == 1 ? "is" : "are");
  if (settings.at("stream_k") != "on") return {};
  const auto other = std::find_if(choice.open.begin(), choice.open.end(), shared_by);
  return fmt::format("warning: no tile of {} is shared: {}{}", shape.name(),
                     why_none_is_shared(chosen.clusters, chosen.resident_clusters, k_steps),
                     other == choice.open.end() ? ""
                                                : fmt::format("; {} shares {} of {}", other->plan.name(),
                                                              shared_by(*other), other->clusters));
}

/// The open plans as settings, for `ladder tune`.
std::vector<Settings> candidates(const ladder::Shape& shape, const Settings& settings) {
  std::vector<Settings> all;
  for (const Estimate& estimate : open_plans(shape, settings)) {
    Settings plan = settings;
    plan["tile"] = estimate.plan.tile();
    plan["cluster_m"] = std::to_string(estimate.plan.cluster_m);
    plan["cluster_n"] = std::to_string(estimate.plan.cluster_n);
    plan["cluster_k"] = std::to_string(estimate.plan.cluster_k);
    plan["stream_k"] = estimate.plan.stream_k ? "on" : "off";
    all.push_back(plan);
  }
  return all;
}

ladder::Shape shape_of(const Gemm& p) { return {p.m, p.n, p.k}; }

void check(const Gemm& p, const Settings& settings) {
  ladder::require_tma(p, settings);
  open_plans(shape_of(p), settings);
}

/// Whether to use programmatic dependent launch. A short kernel gains by beginning before the previous kernel
/// has ended. Longer kernels run at the power limit, where the pause between two kernels costs nothing: the
/// GPU cools.
bool uses_pdl(const Estimate& estimate, const Settings& settings) {
  constexpr double kShortUs = 50;
  if (settings.at("pdl") != "auto") return settings.at("pdl") == "on";
  return estimate.us < kShortUs;
}

using Launcher = void (*)(const Gemm&, const Settings&, const Order&, const Workspace&, cudaStream_t);

template <class S>
void launch_shape(const Gemm& p, const Settings& settings, const Order& order, const Workspace& workspace,
                  cudaStream_t stream) {
  ladder::visit_epilogue(settings.at("epilogue"), p.bias, p.n, [&]<class Epilogue>(const Epilogue& epilogue) {
    if constexpr (std::is_same_v<Epilogue, ladder::Identity> || takes_epilogues(plan_of(S())))
      launch_gemm<S>(p, order, Ending<Epilogue>{epilogue, workspace}, stream);
  });
}

Launcher launcher_of(const Plan& plan) {
  Launcher launcher = nullptr;
  visit_shapes([&]<class S>(S shape) {
    if (plan_of(shape) == plan) launcher = launch_shape<S>;
  });
  return launcher;
}

/// What a launch needs to know beyond its matrices.
struct PreparedLaunch {
  Launcher launcher;
  Order order;
  bool needs_workspace;
};

PreparedLaunch prepare_launch(const Estimate& estimate, const Settings& settings) {
  const int group = std::max(1, std::stoi(settings.at("group")) / estimate.plan.cluster_m);
  return {launcher_of(estimate.plan),
          {group, uses_pdl(estimate, settings), spare_sms(settings)},
          estimate.partials > 1};
}

/// The launches of a shape: the one that is chosen, and the one where there is no memory for its workspace.
/// Where the settings allow no other kernel, these are the same: without a workspace its tiles stay whole.
struct PreparedLaunches {
  PreparedLaunch chosen, without_workspace;
};

PreparedLaunches prepare_launches(const ladder::Shape& shape, const Settings& settings) {
  const Choice choice = choose(shape, settings);
  const auto whole = std::find_if(choice.open.begin(), choice.open.end(),
                                  [](const Estimate& estimate) { return estimate.partials == 1; });
  return {prepare_launch(choice.estimate(), settings),
          prepare_launch(whole == choice.open.end() ? choice.estimate() : *whole, settings)};
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  ladder::require_tma(p, settings);
  ladder::require_bias(p, settings);
  // Most launches repeat the one before, and the choice takes longer than they do.
  static thread_local std::tuple<int, ladder::Shape, Settings> prepared_for;
  static thread_local PreparedLaunches prepared;
  const int device = current_device();
  const ladder::Shape shape = shape_of(p);
  if (const auto now = std::tie(device, shape, settings); prepared_for != now) {
    prepared = prepare_launches(shape, settings);
    prepared_for = now;
  }
  const bool wants_workspace = prepared.chosen.needs_workspace;
  const Workspace workspace = wants_workspace ? workspace_of(stream) : Workspace();
  const PreparedLaunch& chosen =
      wants_workspace && !workspace.sums ? prepared.without_workspace : prepared.chosen;
  chosen.launcher(p, settings, chosen.order, workspace, stream);
}

/// A, B and the bias are read, C is written.
double global_bytes(const Gemm& p, const Settings& settings) {
  return shape_of(p).bytes() + (settings.at("epilogue") == "none" ? 0 : p.n * sizeof(__nv_bfloat16));
}

}  // namespace

int resident_clusters_of(const Plan& plan) {
  int resident = 0;
  visit_shapes([&]<class S>(S shape) {
    if (plan_of(shape) == plan)
      resident = ladder::resident_clusters(gemm<S, ladder::Identity>, S::kThreads, sizeof(SharedStorage<S>),
                                           S::kBlocks);
  });
  return resident;
}

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "06_any_shape",
      .idea =
          "A plan chooses tile and cluster for the shape; stream-K splits the tiles of a last, partial wave.",
      .knobs = {ladder::wgmma_knob(),
                {"tile",
                 "tile of C that a block computes; auto takes the plan that is predicted fastest",
                 {"auto", "128x256", "192x192", "128x192", "192x128", "128x128", "192x64", "128x64", "64x256",
                  "64x192", "64x128", "64x64"}},
                {"cluster_m", "blocks that receive the same tiles of B", {"auto", "1", "2", "4"}},
                {"cluster_n", "blocks that receive the same tiles of A", {"auto", "1", "2", "4"}},
                {"cluster_k", "blocks that split K", {"auto", "1", "2", "4"}},
                {"stream_k",
                 "whether clusters split the tiles that would not fill a wave along K",
                 {"auto", "off", "on"}},
                ladder::epilogue_knob(),
                {"pdl",
                 "programmatic dependent launch: begin while the kernel before still runs",
                 {"auto", "off", "on"}},
                {"spare_sms", "multiprocessors left to other kernels", {"0", "4", "8", "16", "32"}},
                ladder::group_knob()},
      .rungs = {{.label = "shape, by plan",
                 .settings = {{"pdl", "off"}},
                 .id = "any",
                 .cause =
                     "the plan chooses tile and cluster for the shape, and stream-K fills the last wave"}},
      .builds_on = {"06_clusters_dsmem"},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launch,
      .epilogue = ladder::reference_epilogue,
      .global_bytes = global_bytes,
      .choice = choice,
      .explain = explain,
      .candidates = candidates,
      .remark = remark,
      // For small problems the plan, which is a large GPU's, has no clusters and splits no tiles.
      .cpu_rows = {{{"cluster_m", "2"}, {"cluster_n", "1"}},
                   {{"cluster_n", "4"}},
                   {{"cluster_k", "4"}, {"cluster_m", "1"}},
                   {{"cluster_m", "2"}, {"cluster_k", "2"}},
                   {{"tile", "64x128"}, {"stream_k", "on"}}},
      // 6 tiles of 64x128 for 4 blocks, and enough K steps to split them; and 3, so that a block shares two.
      .cpu_shape = {192, 256, 512},
      .cpu_check = {323, 72, 776},
      .cpu_check_few = {40, 456, 40}};
  return lesson;
}

}  // namespace lesson06::any_shape
