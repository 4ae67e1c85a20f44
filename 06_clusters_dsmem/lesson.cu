/// @file
/// Lesson 06 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <stdexcept>

#include "06_clusters_dsmem/gemm.cuh"
#include "common/host/kernel_resources.hpp"
#include "common/host/requirements.hpp"

namespace lesson06 {
namespace {
using ladder::Settings;

/// Calls visit(Shape<...>()) for the settings' tile and cluster, if there is such a kernel.
template <class Visit>
bool visit_shape(const Settings& settings, const Visit& visit) {
  const std::string chosen =
      settings.at("tile") + " " + settings.at("cluster_m") + " " + settings.at("cluster_k");
  bool found = false;
  const auto offer = [&]<class S>(S shape) {
    const std::string name = std::to_string(S::kTile.m) + "x" + std::to_string(S::kTile.n) + " " +
                             std::to_string(S::kClusterM) + " " + std::to_string(S::kClusterK);
    if (name == chosen) found = true, visit(shape);
  };
  const auto offer_tile = [&]<int kM, int kN>(std::integer_sequence<int, kM, kN>) {
    offer(Shape<kM, kN, 1, 1>());
    offer(Shape<kM, kN, 2, 1>());
    offer(Shape<kM, kN, 1, 2>());
    offer(Shape<kM, kN, 2, 2>());
  };
  offer(Shape<64, 64, 1, 1>());
  offer_tile(std::integer_sequence<int, 64, 128>());
  offer_tile(std::integer_sequence<int, 128, 128>());
  offer(Shape<128, 256, 1, 1>());
  offer(Shape<128, 256, 2, 1>());
  offer(Shape<128, 256, 1, 2>());
  offer(Shape<256, 128, 1, 1>());  // K is split where there are few tiles, not where they are large
  offer(Shape<256, 128, 2, 1>());
  offer(Shape<128, 256, 4, 1>());
  offer(Shape<128, 256, 1, 4>());
  return found;
}

void check(const Gemm& p, const Settings& settings) {
  ladder::require_tma(p, settings);
  if (!visit_shape(settings, [](auto) {})) throw std::invalid_argument("no such kernel");
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check(p, settings);
  visit_shape(settings, [&]<class S>(S) {
    launch_gemm<S>(p, std::stoi(settings.at("group")), settings.at("begins") == "early",
                   settings.at("k_order") == "turns", stream);
  });
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "06_clusters_dsmem",
      .idea =
          "Blocks of a cluster share: tiles of B by multicast, partial sums through each other's shared "
          "memory.",
      .knobs = {ladder::wgmma_knob(),
                {"tile", "of C", {"128x256", "64x64", "64x128", "128x128", "256x128"}},
                {"cluster_m", "blocks that share tiles of B", {"2", "1", "4"}},
                {"cluster_k", "blocks that split K", {"1", "2", "4"}},
                {"k_order",
                 "turns: every other tile from the last K step to the first, which is still in the L2 cache",
                 {"turns", "forward"}},
                {"begins", "when the launch before it has ended, or earlier", {"early", "after"}},
                ladder::group_knob()},
      .rungs = {{"c1 early", {{"cluster_m", "1"}}},
                {"c1 after", {{"cluster_m", "1"}, {"begins", "after"}}},
                {"c2 g8", {{"group", "8"}}},
                {"c2 g8 after", {{"group", "8"}, {"begins", "after"}}}},
      .minimum_compute_capability = 90,
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson06
