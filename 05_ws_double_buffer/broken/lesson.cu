/// @file
/// Lesson 05 for the lab: one of its kernels, so that a broken copy is compiled quickly.
#include "05_ws_double_buffer/gemm.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson05 {
namespace {

void check(const Gemm& p, const ladder::Settings& settings) { ladder::require_tma(p, settings); }

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  launch_gemm<4>(p, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {.name = "05_ws_double_buffer",
                                        .idea = "Lesson 05, for the lab.",
                                        .knobs = {ladder::wgmma_knob()},
                                        .rungs = {{"lab", {}}},
                                        .minimum_architecture = ladder::kHopper,
                                        .check = check,
                                        .launch = launch};
  return lesson;
}

}  // namespace lesson05
