/// @file
/// Lesson 06 for the lab: a few of its kernels, so that a broken copy is compiled quickly.
#include <stdexcept>

#include "06_clusters_dsmem/gemm.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson06 {
namespace {

/// The kernel that `settings` choose.
template <class Visit>
void visit_shape(const ladder::Settings& settings, const Visit& visit) {
  const std::string kernel =
      settings.at("tile") + " " + settings.at("cluster_m") + "x" + settings.at("cluster_k");
  if (kernel == "64x128 1x1") return visit(Shape<64, 128, 1, 1>());
  if (kernel == "64x128 2x1") return visit(Shape<64, 128, 2, 1>());
  if (kernel == "64x128 1x2") return visit(Shape<64, 128, 1, 2>());
  if (kernel == "128x256 2x1") return visit(Shape<128, 256, 2, 1>());
  throw std::invalid_argument("--tile " + kernel + ": the lab has 64x128 1x1, 2x1, 1x2 and 128x256 2x1");
}

void check(const Gemm& p, const ladder::Settings& settings) {
  ladder::require_tma(p, settings);
  visit_shape(settings, [](auto) {});
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const Order order{std::stoi(settings.at("group")), /*turns=*/true, /*begins_early=*/false, /*spare_sms=*/0};
  visit_shape(settings, [&]<class S>(S) { launch_gemm<S>(p, order, stream); });
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {.name = "06_clusters_dsmem",
                                        .idea = "Lesson 06, for the lab.",
                                        .knobs = {ladder::wgmma_knob(),
                                                  {"tile", "of C, in one block", {"64x128", "128x256"}},
                                                  {"cluster_m", "blocks that share tiles of B", {"2", "1"}},
                                                  {"cluster_k", "blocks that split K", {"1", "2"}},
                                                  ladder::group_knob()},
                                        .rungs = {{"lab", {}}},
                                        .minimum_compute_capability = 90,
                                        .check = check,
                                        .launch = launch};
  return lesson;
}

}  // namespace lesson06
