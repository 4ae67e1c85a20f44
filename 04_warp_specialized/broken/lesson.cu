/// @file
/// Lesson 04 for the lab: one of its kernels and the one without TMA, with two slots, so that a broken copy
/// is compiled quickly.
#include "04_warp_specialized/gemm.cuh"
#include "04_warp_specialized/variants/roles_without_tma.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

bool has_tma(const ladder::Settings& settings) { return ladder::usable_loader(settings) == "tma"; }

void check(const Gemm& p, const ladder::Settings& settings) {
  has_tma(settings) ? ladder::require_tma(p, settings) : ladder::require_chunks(p);
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  if (has_tma(settings))
    launch_gemm(p, stream);
  else
    without_tma::launch_gemm<2, 64>(p, ladder::kTileGroup, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {.name = "04_warp_specialized",
                                        .idea = "Lesson 04, for the lab.",
                                        .knobs = {ladder::roles_core_knob(), ladder::loader_knob()},
                                        .rungs = {{"lab", {}}},
                                        .minimum_architecture = ladder::kAmpere,
                                        .check = check,
                                        .launch = launch};
  return lesson;
}

}  // namespace lesson04
