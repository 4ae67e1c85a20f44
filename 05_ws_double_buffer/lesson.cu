/// @file
/// Lesson 05 for the programs: its knobs, its rung, its limits.
#include "05_ws_double_buffer/gemm.cuh"
#include "common/host/requirements.hpp"

namespace lesson05 {
namespace {

void check(const Gemm& p, const ladder::Settings& settings) { ladder::require_tma(p, settings); }

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const int group = std::stoi(settings.at("group"));
  if (settings.at("slots") == "2") launch_gemm<2>(p, group, stream);
  if (settings.at("slots") == "3") launch_gemm<3>(p, group, stream);
  if (settings.at("slots") == "4") launch_gemm<4>(p, group, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "05_ws_double_buffer",
      .idea = "The loader runs ahead of compute, through a ring of slots.",
      .knobs = {ladder::wgmma_knob(),
                {"slots", "tiles of A and B that shared memory holds", {"4", "2", "3"}},
                ladder::group_knob()},
      .rungs = {{"roles, ring of 4", {}}},
      .minimum_compute_capability = 90,
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson05
