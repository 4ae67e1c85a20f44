/// @file
/// Lesson 06 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "06_clusters_dsmem/any_shape/kernels.cuh"
#include "06_clusters_dsmem/any_shape/launch.cuh"
#include "06_clusters_dsmem/any_shape/on_demand.hpp"
#include "06_clusters_dsmem/any_shape/plan.hpp"
#include "06_clusters_dsmem/any_shape/residents.hpp"
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

/// Whether a built-in kernel is compiled with other epilogues than none: each of these doubles what a
/// compiler has to do.
constexpr bool takes_epilogues(const Plan& plan) {
  constexpr Plan kThese[] = {{128, 256, 2, 1, 1},
                             {64, 128, 1, 1, 1},
                             {64, 128, 1, 1, 2},
                             {64, 128, 1, 1, 1, true},
                             {136, 128, 1, 1, 1, false, true},
                             {48, 256, 1, 1, 2, true, true},
                             {64, 128, 4, 1, 1, true}};
  return std::find(std::begin(kThese), std::end(kThese), plan) != std::end(kThese);
}

int current_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

int spare_sms(const Settings& settings) { return std::stoi(settings.at("spare_sms")); }

/// The knobs of a plan that the settings do not leave open.
Fixed fixed_by(const Settings& settings) {
  const auto number = [&](const char* knob) -> std::optional<int> {
    const std::string& value = settings.at(knob);
    return value == "auto" ? std::nullopt : std::optional(std::stoi(value));
  };
  Fixed fixed;
  if (const std::string& tile = settings.at("tile"); tile != "auto") {
    fixed.tile_m = std::stoi(tile);
    fixed.tile_n = std::stoi(tile.substr(tile.find('x') + 1));
  }
  fixed.cluster_m = number("cluster_m");
  fixed.cluster_n = number("cluster_n");
  fixed.cluster_k = number("cluster_k");
  if (const std::string& value = settings.at("stream_k"); value != "auto") fixed.stream_k = value == "on";
  if (const std::string& value = settings.at("swap"); value != "auto") fixed.swapped = value == "on";
  return fixed;
}

bool allows(const Fixed& fixed, const Plan& plan) {
  const auto is = [](const auto& knob, auto value) { return !knob || *knob == value; };
  return is(fixed.tile_m, plan.tile_m) && is(fixed.tile_n, plan.tile_n) &&
         is(fixed.cluster_m, plan.cluster_m) && is(fixed.cluster_n, plan.cluster_n) &&
         is(fixed.cluster_k, plan.cluster_k) && is(fixed.stream_k, plan.stream_k) &&
         is(fixed.swapped, plan.swapped);
}

bool has_epilogue(const Plan& built_in, const Settings& settings) {
  return settings.at("epilogue") == "none" || takes_epilogues(built_in);
}

/// The kernels with this epilogue that the program was built with.
std::vector<Plan> built_in(const Settings& settings) {
  std::vector<Plan> plans(std::begin(kBuiltIn), std::end(kBuiltIn));
  std::erase_if(plans, [&](const Plan& plan) { return !has_epilogue(plan, settings); });
  return plans;
}

/// "--tile 64x128 --cluster_m 2": the knobs of a plan that are not left to the lesson.
std::string asked_for(const Settings& settings) {
  std::string words;
  for (const char* const knob :
       {"tile", "cluster_m", "cluster_n", "cluster_k", "stream_k", "swap", "epilogue"})
    if (const std::string& value = settings.at(knob); value != "auto" && value != "none")
      words += fmt::format("{}--{} {}", words.empty() ? "" : " ", knob, value);
  return words;
}

/// Why the settings leave no plan.
std::string why_none(const Settings& settings) {
  if (compiles_on_demand())
    return asked_for(settings) +
           ": there is no such kernel: a cluster has at most 8 blocks, and a tile of 192 rows "
           "at most 192 columns, one of 256 at most 128, in eights for each block along K; with swapped "
           "operands rows and columns change places, and each block beside others loads rows in eights";
  std::string list;
  for (const Plan& plan : built_in(settings)) list += (list.empty() ? "" : "; ") + plan.name();
  return fmt::format("{}: no such kernel is compiled; there are {}", asked_for(settings), list);
}

/// What the settings leave open, the cheapest first. @throws std::invalid_argument if there is no such kernel
std::vector<Estimate> open_plans(const ladder::Shape& shape, const Settings& settings, bool on_demand) {
  const Fixed fixed = fixed_by(settings);
  std::vector<Plan> open = on_demand ? plans_by_waves(shape, this_gpu(), fixed) : built_in(settings);
  std::erase_if(open, [&](const Plan& plan) { return !allows(fixed, plan); });
  if (open.empty()) throw std::invalid_argument(why_none(settings));
  const Plan first = open.front();
  std::erase_if(open, [&](const Plan& plan) { return this_gpu().resident[plan.blocks()] == 0; });
  if (open.empty())
    throw std::invalid_argument(
        fmt::format("{}: this GPU has no room for one cluster of {}", asked_for(settings), first.name()));
  std::vector<Estimate> result = estimates(shape, open, this_gpu(), spare_sms(settings));
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
  Fixed plan = fixed_by(*tuned);
  if (!plan.swapped) plan.swapped = false;  // remembered before there was a choice
  const auto found = std::find_if(open.begin(), open.end(),
                                  [&](const Estimate& estimate) { return allows(plan, estimate.plan); });
  return found == open.end() ? std::nullopt : std::optional<Estimate>(*found);
}

/// What a shape and its settings come to.
struct Choice {
  std::vector<Estimate> open;  ///< see open_plans()
  std::optional<Estimate> remembered;

  const Estimate& estimate() const { return remembered ? *remembered : open.front(); }
};
Choice choose(const ladder::Shape& shape, const Settings& settings) {
  Choice choice{open_plans(shape, settings, compiles_on_demand()), {}};
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
  for (const Estimate& estimate : varied(open_plans(shape, settings, compiles_on_demand()))) {
    Settings plan = settings;
    plan["tile"] = estimate.plan.tile();
    plan["cluster_m"] = std::to_string(estimate.plan.cluster_m);
    plan["cluster_n"] = std::to_string(estimate.plan.cluster_n);
    plan["cluster_k"] = std::to_string(estimate.plan.cluster_k);
    plan["stream_k"] = estimate.plan.stream_k ? "on" : "off";
    plan["swap"] = estimate.plan.swapped ? "on" : "off";
    all.push_back(plan);
  }
  return all;
}

ladder::Shape shape_of(const Gemm& p) { return {p.m, p.n, p.k}; }

void check(const Gemm& p, const Settings& settings) {
  ladder::require_tma(p, settings);
  open_plans(shape_of(p), settings, compiles_on_demand());
}

/// Whether to use programmatic dependent launch. A short kernel gains by beginning before the previous kernel
/// has ended. Longer kernels, which run at the power limit, lost up to 1.5 % or gained 2 %, within the
/// scatter (docs/decisions.md, 8).
bool uses_pdl(const Estimate& estimate, const Settings& settings) {
  constexpr double kShortUs = 50;
  if (settings.at("pdl") != "auto") return settings.at("pdl") == "on";
  return estimate.us < kShortUs;
}

using Launcher = void (*)(const Gemm&, const Settings&, const Order&, const Workspace&, cudaStream_t);

template <class S>
void launch_built_in(const Gemm& p, const Settings& settings, const Order& order, const Workspace& workspace,
                     cudaStream_t stream) {
  ladder::visit_epilogue(settings.at("epilogue"), p.bias, p.n, [&]<class Epilogue>(const Epilogue& epilogue) {
    if constexpr (std::is_same_v<Epilogue, ladder::Identity> || takes_epilogues(plan_of<S>()))
      launch_gemm<S>(p, order, Ending<Epilogue>{epilogue, workspace}, stream);
  });
}

Launcher launcher_of(const Plan& plan) {
  Launcher launcher = nullptr;
  visit_built_in([&]<class S>(S) {
    if (plan_of<S>() == plan) launcher = launch_built_in<S>;
  });
  return launcher;
}

/// The type of an epilogue, as source text.
std::string type_of_epilogue(const std::string& name) {
  if (name == "bias_relu") return "ladder::BiasThen<ladder::Relu>";
  return name == "bias_gelu" ? "ladder::BiasThen<ladder::Gelu>" : "ladder::Identity";
}

/// What a launch needs to know beyond its matrices.
struct PreparedLaunch {
  Plan plan;
  Order order;
  bool needs_workspace;
  Launcher built_in = nullptr;      ///< or
  const void* on_demand = nullptr;  ///< the kernel
  int resident = 0;                 ///< clusters of it
};

PreparedLaunch prepare_launch(const Estimate& estimate, const Settings& settings, bool on_demand) {
  const int group = std::max(1, std::stoi(settings.at("group")) / estimate.plan.walked().cluster_m);
  PreparedLaunch prepared{
      estimate.plan, {group, uses_pdl(estimate, settings), spare_sms(settings)}, estimate.partials > 1};
  prepared.resident = this_gpu().resident[estimate.plan.blocks()];
  if (on_demand)
    prepared.on_demand = kernel_on_demand(estimate.plan, type_of_epilogue(settings.at("epilogue")));
  else
    prepared.built_in = launcher_of(estimate.plan);
  return prepared;
}

/// The launches of a shape: the one that is chosen, and the one where there is no memory for its workspace.
/// Where the settings allow no other kernel, these are the same: without a workspace its tiles stay whole.
class PreparedLaunches {
 public:
  PreparedLaunches() = default;
  PreparedLaunches(const ladder::Shape& shape, const Settings& settings)
      : shape_(shape), settings_(settings) {
    try {
      prepare(choose(shape, settings), compiles_on_demand());
    } catch (const std::runtime_error& error) {
      if (!compiles_on_demand()) throw;
      std::cerr << "06_any_shape: warning: " << error.what() << "; a kernel that is built in serves"
                << std::endl;
      prepare({open_plans(shape, settings, false), {}}, false);
    }
  }

  void launch(const Gemm& p, cudaStream_t stream) {
    const Workspace workspace = chosen_.needs_workspace ? workspace_of(stream) : Workspace();
    if (chosen_.needs_workspace && !workspace.sums)
      launch(without_workspace(), p, workspace, stream, maps_without_);
    else
      launch(chosen_, p, workspace, stream, maps_);
  }

 private:
  /// The maps of matrices that were multiplied before. To encode them takes longer than the rest of a launch.
  using MapsOfMatrices = std::map<std::array<const void*, 3>, Maps>;

  void prepare(const Choice& choice, bool on_demand) {
    chosen_ = prepare_launch(choice.estimate(), settings_, on_demand);
    const auto whole = std::find_if(choice.open.begin(), choice.open.end(),
                                    [](const Estimate& estimate) { return estimate.partials == 1; });
    whole_ = whole == choice.open.end() ? choice.estimate() : *whole;
  }

  const PreparedLaunch& without_workspace() {
    if (!without_workspace_)
      without_workspace_ = prepare_launch(whole_, settings_, chosen_.on_demand != nullptr);
    return *without_workspace_;
  }

  void launch(const PreparedLaunch& kernel, const Gemm& p, const Workspace& workspace, cudaStream_t stream,
              MapsOfMatrices& known) {
    if (kernel.built_in) return kernel.built_in(p, settings_, kernel.order, workspace, stream);
    constexpr size_t kMostKnown = 1024;
    if (known.size() > kMostKnown) known.clear();
    const auto found = known.try_emplace({p.a, p.b, p.c});
    if (found.second) found.first->second = maps_of(kernel.plan, p);
    const Work work = work_of(kernel.plan, p, kernel.resident, kernel.order, workspace);
    ladder::visit_epilogue(settings_.at("epilogue"), p.bias, p.n, [&](const auto& epilogue) {
      Ending<std::decay_t<decltype(epilogue)>> ending{epilogue, workspace};
      const void* const arguments[] = {&found.first->second, &work, &ending};
      launch_on_demand(
          kernel.on_demand,
          config_of(kernel.plan, work, threads_of(kernel.plan), kSharedBytes, kernel.order, stream),
          arguments);
    });
  }

  ladder::Shape shape_;
  Settings settings_;
  PreparedLaunch chosen_;
  Estimate whole_;
  std::optional<PreparedLaunch> without_workspace_;
  MapsOfMatrices maps_, maps_without_;
};

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  ladder::require_tma(p, settings);
  ladder::require_bias(p, settings);
  // Most launches repeat the one before, and the choice takes longer than they do.
  static thread_local std::tuple<int, ladder::Shape, Settings> prepared_for;
  static thread_local PreparedLaunches prepared;
  const int device = current_device();
  const ladder::Shape shape = shape_of(p);
  if (const auto now = std::tie(device, shape, settings); prepared_for != now) {
    prepared = PreparedLaunches(shape, settings);
    prepared_for = now;
  }
  prepared.launch(p, stream);
}

/// A, B and the bias are read, C is written.
double global_bytes(const Gemm& p, const Settings& settings) {
  return shape_of(p).bytes() + (settings.at("epilogue") == "none" ? 0 : p.n * sizeof(__nv_bfloat16));
}

/// On a GPU all that can be compiled; on the CPU device those of the kernels that are.
std::vector<std::string> tile_choices() {
  std::vector<std::string> choices = {"auto"};
  const auto add = [&](const std::string& tile) {
    if (std::find(choices.begin(), choices.end(), tile) == choices.end()) choices.push_back(tile);
  };
  for (const Plan& plan : kBuiltIn) add(plan.tile());
#ifndef LADDER_CPU_DEVICE
  for (const int height : {64, 128, 192, 256})
    for (int width = 8; width <= widest_tile(height); width += 8) {
      add(Plan{height, width}.tile());
      add(Plan{width, height}.tile());  // with swapped operands
    }
#endif
  return choices;
}

}  // namespace

int resident_clusters_of(const Plan& plan) {
  int resident = 0;
  visit_built_in([&]<class S>(S) {
    if (plan_of<S>() == plan)
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
                {"tile", "tile of C that a block computes; auto takes the plan that is predicted fastest",
                 tile_choices()},
                {"cluster_m", "blocks that receive the same tiles of B", {"auto", "1", "2", "4"}},
                {"cluster_n", "blocks that receive the same tiles of A", {"auto", "1", "2", "4"}},
                {"cluster_k", "blocks that split K", {"auto", "1", "2", "3", "4"}},
                {"stream_k",
                 "whether clusters split the tiles that would not fill a wave along K",
                 {"auto", "off", "on"}},
                {"swap",
                 "whether wgmma's operands are swapped: tiles have rows in eights and whole 64 columns",
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
                   {{"tile", "64x128"}, {"stream_k", "on"}},
                   {{"tile", "136x128"}, {"swap", "on"}}},
      // 6 tiles of 64x128 for 4 blocks, and enough K steps to split them; and 3, so that a block shares two.
      .cpu_shape = {192, 256, 512},
      // 18 tiles of 64x128: their last wave is half empty, so that stream-K shares tiles.
      .cpu_check = {323, 264, 776},
      .cpu_check_few = {40, 456, 24}};
  return lesson;
}

}  // namespace lesson06::any_shape
