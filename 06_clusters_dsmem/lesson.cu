/// @file
/// Lesson 06 for the programs: its knobs, its rungs, its limits.
#include <fmt/core.h>
#include <stdexcept>
#include <string>

#include "06_clusters_dsmem/gemm.cuh"
#include "06_clusters_dsmem/steps/1_multicast.cuh"
#include "common/cuda/kernel_resources.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson06 {

namespace {

bool splits_k(const ladder::Settings& settings) { return settings.at("step") == "split_k"; }

void check(const Gemm& p, const ladder::Settings& settings) {
  ladder::require_tma(p, settings);
  if (splits_k(settings)) ladder::require_k_steps(p, kTile.k, 2);
}

/// As many slots as fit beside what else the kernels keep in shared memory.
constexpr int kSlots = 3, kMulticastSlots = 4;

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  if (splits_k(settings))
    launch_gemm<kSlots>(p, stream);
  else
    multicast::launch_gemm<kMulticastSlots>(p, stream);
}

ladder::Resources resources(const ladder::Settings& settings) {
  const std::string tile = fmt::format("{}x{}", kTile.m, kTile.n);
  if (splits_k(settings))
    return ladder::kernel_resources(gemm<kSlots>, kThreads, sizeof(SharedStorage<kSlots>), tile);
  return ladder::kernel_resources(multicast::gemm<kMulticastSlots>, multicast::kThreads,
                                  sizeof(multicast::SharedStorage<kMulticastSlots>), tile);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "06_clusters_dsmem",
      .idea = "Blocks of a cluster share tiles by multicast, and add up partial sums in each other's memory.",
      .knobs =
          {ladder::wgmma_knob(),
           {"step",
            "how far the lesson has come: split_k is its kernel, in clusters of 2 x 2 blocks; multicast is "
            "the step to it, in clusters of two",
            {"split_k", "multicast"}}},
      .rungs = {{.label = "multicast",
                 .settings = {{"step", "multicast"}},
                 .id = "06.1",
                 .source = "steps/1_multicast.cuh",
                 .cause = "two blocks load a tile of B that both need once"},
                {.label = "partial sums in DSMEM",
                 .settings = {},
                 .id = "06",
                 .cause = "two blocks split K, and add up through each other's shared memory"}},
      .builds_on = {"05_ws_double_buffer"},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launch,
      .resources = resources,
      // Few tiles: a cluster computes four times as much as a block.
      .cpu_check = {131, 264, 264},
      .cpu_check_few = {40, 776, 40}};
  return lesson;
}

}  // namespace lesson06
