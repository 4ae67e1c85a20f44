/// @file
/// Lesson 04 for the lab: one of its kernels, so that a broken copy is compiled quickly.
#include "04_warp_specialized/gemm.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

void check(const Gemm& p, const ladder::Settings& settings) { ladder::require_tma(p, settings); }

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  launch_gemm<128>(p, std::stoi(settings.at("group")), stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {.name = "04_warp_specialized",
                                        .idea = "Lesson 04, for the lab.",
                                        .knobs = {ladder::wgmma_knob(), ladder::group_knob()},
                                        .rungs = {{"lab", {}}},
                                        .minimum_architecture = ladder::kHopper,
                                        .check = check,
                                        .launch = launch};
  return lesson;
}

}  // namespace lesson04
