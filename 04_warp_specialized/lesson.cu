/// @file
/// Lesson 04 for the programs: its knobs, its rung, its limits.
#include <fmt/core.h>
#include <stdexcept>
#include <string>

#include "04_warp_specialized/gemm.cuh"
#include "04_warp_specialized/steps/1_tma.cuh"
#include "04_warp_specialized/steps/2_roles.cuh"
#include "04_warp_specialized/steps/3_walk.cuh"
#include "04_warp_specialized/variants/roles_without_wgmma.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

bool has_wgmma(const ladder::Settings& settings) { return ladder::usable_core(settings) == "wgmma"; }

void check_settings(const ladder::Settings& settings) {
  const std::string loader = ladder::usable_loader(settings);
  if (has_wgmma(settings)) return ladder::require_tma(settings);
  if (const std::string& step = settings.at("step"); step != lesson().default_of("step"))
    throw std::invalid_argument(fmt::format("--step {}: only with --core wgmma", step));
  ladder::require_shared_memory("--loader " + loader,
                                sizeof(without_wgmma::SharedStorage<without_wgmma::OneSlot>));
}

void check(const Gemm& p, const ladder::Settings& settings) {
  check_settings(settings);
  has_wgmma(settings) ? ladder::require_tma_rows(p) : ladder::require_chunks(p);
}

/// Of the kernels with wgmma.
auto kernel_of(const std::string& step) {
  if (step == "tma") return tma::launch_gemm;
  if (step == "roles") return roles::launch_gemm;
  if (step == "walk") return walk::launch_gemm;
  return launch_gemm;
}

ladder::Launcher launcher_of(const ladder::Settings& settings) {
  check_settings(settings);
  if (has_wgmma(settings))
    return [launch = kernel_of(settings.at("step"))](const Gemm& p, cudaStream_t stream) {
      ladder::require_tma_rows(p);
      launch(p, stream);
    };
  ladder::Launcher launcher;
  without_wgmma::visit_loader<without_wgmma::OneSlot>(
      ladder::usable_loader(settings), [&]<class Loader>(Loader) {
        launcher = [](const Gemm& p, cudaStream_t stream) {
          ladder::require_chunks(p);
          without_wgmma::launch_gemm<Loader, without_wgmma::OneSlot>(p, ladder::kTileGroup, stream);
        };
      });
  return launcher;
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "04_warp_specialized",
      .idea = "Every warp has one permanent job: load, compute or store.",
      .knobs = {ladder::roles_core_knob(),
                ladder::loader_knob(),
                {"step",
                 "how far the lesson has come: storer is its kernel, the others are the steps to it",
                 {"storer", "walk", "roles", "tma"}}},
      .rungs = {{.label = "TMA, one slot",
                 .settings = {{"step", "tma"}},
                 .id = "04.1",
                 .source = "steps/1_tma.cuh",
                 .cause = "one thread asks TMA for a tile, and an mbarrier counts its bytes",
                 .core = "wgmma"},
                {.label = "roles",
                 .settings = {{"step", "roles"}},
                 .id = "04.2",
                 .source = "steps/2_roles.cuh",
                 .cause = "one warp only loads, two warpgroups only compute",
                 .core = "wgmma"},
                {.label = "blocks that stay",
                 .settings = {{"step", "walk"}},
                 .id = "04.3",
                 .source = "steps/3_walk.cuh",
                 .cause = "a block walks over tiles: C is stored while the next tile is loaded",
                 .core = "wgmma"},
                {.label = "a storer",
                 .settings = {},
                 .id = "04",
                 .cause = "C goes through shared memory, and one thread lets TMA store it",
                 .core = "wgmma"},
                {.label = "roles, one slot",
                 .settings = {},
                 .id = "04",
                 .source = "variants/roles_without_wgmma.cuh",
                 .cause = "some warps only load, eight only compute",
                 .core = "mma_sync"}},
      .builds_on = {"02_tiled"},
      .minimum_architecture = ladder::kAmpere,
      .check = check,
      .launch = launcher_of};
  return lesson;
}

}  // namespace lesson04
