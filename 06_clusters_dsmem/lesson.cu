/// @file
/// Lesson 06 for the programs: its knobs, its rungs, its limits.
#include <fmt/core.h>
#include <map>
#include <stdexcept>
#include <string>

#include "05_ws_double_buffer/choice_of_tile.cuh"
#include "05_ws_double_buffer/gemm.cuh"
#include "05_ws_double_buffer/steps/2_pieces.cuh"
#include "06_clusters_dsmem/gemm.cuh"
#include "06_clusters_dsmem/steps/1_multicast.cuh"
#include "06_clusters_dsmem/steps/2_narrow_tile.cuh"
#include "06_clusters_dsmem/steps/3_one_way.cuh"
#include "common/cuda/kernel_resources.hpp"
#include "common/cuda/residency.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson06 {

namespace {

constexpr int kSlots = 4;

/// Whether rows straddle cache lines, so that L2 reads two lines for each row of a box.
bool has_straddling_rows(const Gemm& p) {
  constexpr int kLineColumns = 128 / sizeof(__nv_bfloat16);  // of a cache line
  return p.n % kLineColumns != 0 || p.k % kLineColumns != 0;
}

/// When does multicast pay? Where rows straddle cache lines, and every multiprocessor still gets a tile.
bool multicast_pays(const Gemm& p) {
  const int tiles = ladder::tiles_over(p.m, multicast::kTile.m * multicast::kBlocksM) *
                    ladder::tiles_over(p.n, multicast::kTile.n);
  const int resident =
      ladder::resident_clusters(multicast::gemm<kSlots>, multicast::kThreads,
                                sizeof(multicast::SharedStorage<kSlots>), multicast::kBlocks);
  return has_straddling_rows(p) && resident > 0 && tiles >= resident;
}

/// When does it pay to split K? Where tiles are so few that all clusters run at one time. Each part of K
/// needs a step. Both ways to add up have clusters of the same size, so that one answer holds for both.
bool split_pays(const Gemm& p) {
  const int tiles = ladder::tiles_over(p.m, kTile.m * kBlocksM) * ladder::tiles_over(p.n, kTile.n);
  const int resident =
      ladder::resident_clusters(gemm<kSlots>, kThreads, sizeof(SharedStorage<kSlots>), kBlocks);
  return p.k > kTile.k && tiles <= resident;
}

/// What the settings choose.
struct Choice {
  std::string step;
  bool splits_k, always;  ///< `always`: also where clusters do not pay

  explicit Choice(const ladder::Settings& settings)
      : step(settings.at("step")),
        splits_k(step == "split_k" || step == "one_way"),
        always(settings.at("clusters") == "always") {}

  /// Of the kernel of the step.
  const char* name() const {
    return step == "split_k" ? "06" : step == "one_way" ? "06.3" : step == "narrow_tile" ? "06.2" : "06.1";
  }
};

/// Calls visit(kernel, its launcher, its threads, its shared memory, its tile, its name) for the kernel of
/// the step, or of the last one before it that pays for the shape. The narrow tile alone never does.
template <class Visit>
void visit_kernel(const Gemm& p, const Choice& choice, const Visit& visit) {
  const bool splits_k = choice.splits_k && (choice.always || split_pays(p));
  if (splits_k && choice.step == "split_k")
    return visit(gemm<kSlots>, launch_gemm<kSlots>, kThreads, sizeof(SharedStorage<kSlots>), kTile, "06");
  if (splits_k)
    return visit(one_way::gemm<kSlots>, one_way::launch_gemm<kSlots>, one_way::kThreads,
                 sizeof(one_way::SharedStorage<kSlots>), one_way::kTile, "06.3");
  if (choice.always && choice.step == "narrow_tile")
    return visit(narrow_tile::gemm<kSlots>, narrow_tile::launch_gemm<kSlots>, narrow_tile::kThreads,
                 sizeof(narrow_tile::SharedStorage<kSlots>), narrow_tile::kTile, "06.2");
  if (multicast_pays(p) || (choice.always && choice.step == "multicast"))
    return visit(multicast::gemm<kSlots>, multicast::launch_gemm<kSlots>, multicast::kThreads,
                 sizeof(multicast::SharedStorage<kSlots>), multicast::kTile, "06.1");
  if (lesson05::wide_tile_pays<kSlots>(p))
    return visit(lesson05::gemm<kSlots>, lesson05::launch_gemm<kSlots>, lesson05::kThreads,
                 sizeof(lesson05::SharedStorage<kSlots>), lesson05::kTile, "05");
  visit(lesson05::pieces::gemm<kSlots>, lesson05::pieces::launch_gemm<kSlots>, lesson05::pieces::kThreads,
        sizeof(lesson05::pieces::SharedStorage<kSlots>), lesson05::pieces::kTile, "05.2");
}

void require(const Gemm& p, const Choice& choice) {
  ladder::require_tma_rows(p);
  if (choice.always && choice.splits_k) ladder::require_k_steps(p, kTile.k, kBlocksK);
}

/// Clusters that are asked for must fit.
void check_settings(const ladder::Settings& settings) {
  ladder::require_tma(settings);
  const Choice choice(settings);
  if (!choice.always) return;
  visit_kernel({}, choice, [&](auto* kernel, auto*, int threads, size_t shared_bytes, auto&&...) {
    const int blocks = choice.splits_k ? kBlocks : multicast::kBlocks;
    if (ladder::resident_clusters(kernel, threads, shared_bytes, blocks) == 0)
      throw std::invalid_argument(
          fmt::format("--clusters always: this GPU has no room for a cluster of {} blocks", blocks));
  });
}

void check(const Gemm& p, const ladder::Settings& settings) {
  check_settings(settings);
  require(p, Choice(settings));
}

ladder::Launcher launcher_of(const ladder::Settings& settings) {
  check_settings(settings);
  return [choice = Choice(settings)](const Gemm& p, cudaStream_t stream) {
    require(p, choice);
    visit_kernel(p, choice, [&](auto*, auto* launch_it, auto&&...) { launch_it(p, stream); });
  };
}

/// Of the kernel of the step, which need not be the one that pays for a shape.
ladder::Resources resources(const ladder::Settings& settings) {
  Choice forced(settings);
  forced.always = true;
  ladder::Resources result;
  visit_kernel(
      {}, forced, [&](auto* kernel, auto*, int threads, size_t shared_bytes, const auto& tile, const char*) {
        result =
            ladder::kernel_resources(kernel, threads, shared_bytes, fmt::format("{}x{}", tile.m, tile.n));
      });
  return result;
}

/// Where the rules take the kernel of an earlier step.
std::string remark(const ladder::Shape& shape, const ladder::Settings& settings) {
  std::string text;
  const Choice choice(settings);
  visit_kernel({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k}, choice,
               [&](auto*, auto*, int, size_t, const auto&, const std::string& name) {
                 if (name != choice.name())
                   text =
                       fmt::format("06: {} does not pay here, so that --clusters auto takes the kernel of {}",
                                   choice.splits_k                ? "a split of K"
                                   : choice.step == "narrow_tile" ? "a narrow tile"
                                                                  : "multicast",
                                   name);
               });
  return text;
}

ladder::TakenKernel taken(const ladder::Shape& shape, const ladder::Settings& settings) {
  static const std::map<std::string, std::string> commands = {
      {"06", "06_clusters_dsmem --clusters always"},
      {"06.3", "06_clusters_dsmem --clusters always --step one_way"},
      {"06.2", "06_clusters_dsmem --clusters always --step narrow_tile"},
      {"06.1", "06_clusters_dsmem --clusters always --step multicast"},
      {"05", "05_ws_double_buffer --tile 128x256"},
      {"05.2", "05_ws_double_buffer --step pieces"}};
  ladder::TakenKernel result;
  visit_kernel({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k}, Choice(settings),
               [&](auto*, auto* launch_it, int, size_t, const auto&, const std::string& name) {
                 result = {name, commands.at(name), launch_it};
               });
  return result;
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "06_clusters_dsmem",
      .idea = "Blocks of a cluster share tiles by multicast, and add up partial sums in each other's memory.",
      .knobs =
          {ladder::wgmma_knob(),
           {"step",
            "how far the lesson has come: split_k is its kernel, in clusters of 2 x 2 blocks, as is one_way; "
            "multicast and narrow_tile are the steps before, in clusters of two",
            {"split_k", "one_way", "narrow_tile", "multicast"}},
           {"clusters",
            "auto: where they pay by the rules of the kernels, elsewhere the kernel of an earlier step",
            {"auto", "always"}}},
      .rungs = {{.label = "multicast",
                 .settings = {{"step", "multicast"}},
                 .id = "06.1",
                 .source = "steps/1_multicast.cuh",
                 .cause = "two blocks load a tile of B that both need once"},
                {.label = "a narrow tile",
                 .settings = {{"step", "narrow_tile"}},
                 .id = "06.2",
                 .source = "steps/2_narrow_tile.cuh",
                 .cause = "128 x 128 sums: twice as many tiles, for a split of K"},
                {.label = "a split of K",
                 .settings = {{"step", "one_way"}},
                 .id = "06.3",
                 .source = "steps/3_one_way.cuh",
                 .cause = "two pairs split K; one sends its sums to the other's shared memory"},
                {.label = "sums both ways",
                 .settings = {},
                 .id = "06",
                 .cause = "each peer completes half the columns, so half the sums go each way"}},
      .builds_on = {"05_ws_double_buffer"},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launcher_of,
      .resources = resources,
      .remark = remark,
      .taken = taken,
      .cpu_rows = {{{"step", "split_k"}, {"clusters", "always"}},
                   {{"step", "one_way"}, {"clusters", "always"}},
                   {{"step", "narrow_tile"}, {"clusters", "always"}},
                   {{"step", "multicast"}, {"clusters", "always"}}},
      // Few tiles: a cluster computes four times as much as a block.
      .cpu_check = {387, 264, 296},
      .cpu_check_few = {40, 776, 24}};
  return lesson;
}

}  // namespace lesson06
