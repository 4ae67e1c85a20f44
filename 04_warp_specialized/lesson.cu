/// @file
/// Lesson 04 for the programs: its knobs, its rung, its limits.
#include "04_warp_specialized/gemm.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

void check(const Gemm& p, const ladder::Settings& settings) { ladder::require_tma(p, settings); }

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const int group = std::stoi(settings.at("group"));
  if (settings.at("slot_k") == "192") launch_gemm<192>(p, group, stream);
  if (settings.at("slot_k") == "128") launch_gemm<128>(p, group, stream);
  if (settings.at("slot_k") == "64") launch_gemm<64>(p, group, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "04_warp_specialized",
      .idea = "Every warp has one job, for good: load, compute or store.",
      .knobs = {ladder::wgmma_knob(),
                {"slot_k", "how much of k one hand-over brings", {"192", "128", "64"}},
                ladder::group_knob()},
      .rungs = {{"roles, one slot", {}}},
      .builds_on = {"02_tiled"},
      .minimum_compute_capability = 90,
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson04
