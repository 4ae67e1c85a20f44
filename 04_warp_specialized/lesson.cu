/// @file
/// Lesson 04 for the programs: its knobs, its rung, its limits.
#include "04_warp_specialized/gemm.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

/// The rows of A that a group of tiles shares should fit into the L2 cache of 50 MB: 16 tile rows are 34 MB
/// at k = 8192 and 67 MB at 16384, where blocks that have drifted apart fetch them from memory again.
int group_of(const Gemm& p, const ladder::Settings& settings) {
  constexpr int kLongK = 8192;
  if (settings.at("group") != "auto") return std::stoi(settings.at("group"));
  return p.k > kLongK ? 4 : 16;
}

void check(const Gemm& p, const ladder::Settings& settings) { ladder::require_tma(p, settings); }

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const int group = group_of(p, settings);
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
                {"slot_k", "columns of A, and rows of B, in a slot", {"128", "64", "192"}},
                {"group", "tile rows that blocks visit together", {"auto", "1", "4", "8", "16"}}},
      .rungs = {{"roles, one slot", {}}},
      .builds_on = {"02_tiled"},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson04
