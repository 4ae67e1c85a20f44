/// @file
/// Lesson 06 for the lab: its kernel alone, so that a broken copy is compiled quickly.
#include "06_clusters_dsmem/gemm.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson06 {
namespace {

void check(const Gemm& p, const ladder::Settings& settings) {
  ladder::require_tma(p, settings);
  ladder::require_k_steps(p, kTile.k, 2);
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  launch_gemm<4>(p, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {.name = "06_clusters_dsmem",
                                        .idea = "Lesson 06, for the lab.",
                                        .knobs = {ladder::wgmma_knob()},
                                        .rungs = {{"lab", {}}},
                                        .minimum_architecture = ladder::kHopper,
                                        .check = check,
                                        .launch = launch,
                                        .cpu_check = {387, 264, 296},
                                        .cpu_check_few = {40, 776, 24}};
  return lesson;
}

}  // namespace lesson06
