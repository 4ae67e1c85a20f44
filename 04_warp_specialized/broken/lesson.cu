/// @file
/// Lesson 04 for the lab: one of its kernels and the one without wgmma, with two slots, so that a broken copy
/// is compiled quickly.
#include "04_warp_specialized/gemm.cuh"
#include "04_warp_specialized/variants/roles_without_wgmma.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson04 {
namespace {

bool has_wgmma(const ladder::Settings& settings) { return ladder::usable_core(settings) == "wgmma"; }

void check(const Gemm& p, const ladder::Settings& settings) {
  has_wgmma(settings) ? ladder::require_tma(p, settings) : ladder::require_chunks(p);
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  if (has_wgmma(settings)) return launch_gemm(p, stream);
  using TwoSlots = without_wgmma::Shape<128, 64, 2, 1>;
  without_wgmma::visit_loader<TwoSlots>(ladder::usable_loader(settings), [&]<class Loader>(Loader) {
    without_wgmma::launch_gemm<Loader, TwoSlots>(p, ladder::kTileGroup, stream);
  });
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
