/// @file
/// Lesson 05 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "05_ws_double_buffer/gemm.cuh"
#include "05_ws_double_buffer/ping_pong.cuh"
#include "05_ws_double_buffer/separate_epilogue.cuh"
#include "common/cuda/kernel_resources.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson05 {
namespace {
using ladder::Settings;

/// Calls visit(Shape<...>()) for the shape that `ratio` and `slots` choose.
template <class Visit>
void visit_shape(const Settings& settings, const Visit& visit) {
  const auto visit_slots = [&]<int kWarpgroups>(std::integral_constant<int, kWarpgroups>) {
    const std::string& slots = settings.at("slots");
    if (slots == "2") visit(Shape<kWarpgroups, 2>());
    if (slots == "3") visit(Shape<kWarpgroups, 3>());
    if (slots == "4") visit(Shape<kWarpgroups, 4>());
    if (slots == "5") visit(Shape<kWarpgroups, 5>());
  };
  const std::string& ratio = settings.at("ratio");
  if (ratio == "1:1") visit_slots(std::integral_constant<int, 1>());
  if (ratio == "1:2") visit_slots(std::integral_constant<int, 2>());
  if (ratio == "1:3") visit_slots(std::integral_constant<int, 3>());
}

/// Calls visit(epilogue) with the functor that `epilogue` chooses.
template <class Visit>
void visit_epilogue(const Gemm& p, const Settings& settings, const Visit& visit) {
  const std::string& epilogue = settings.at("epilogue");
  if (epilogue == "none") visit(ladder::Identity());
  if (epilogue == "bias_relu") visit(ladder::BiasThen<ladder::Relu>{p.bias, p.n});
  if (epilogue == "bias_gelu") visit(ladder::BiasThen<ladder::Gelu>{p.bias, p.n});
}

/// visit(shape, epilogue), for shapes that fit into shared memory; no kernel is compiled for others.
template <class Visit>
void visit_kernel(const Gemm& p, const Settings& settings, const Visit& visit) {
  visit_shape(settings, [&]<class Shape>(Shape shape) {
    if constexpr (sizeof(SharedStorage<Shape>) <= kMostSharedBytes)
      visit_epilogue(p, settings, [&](const auto& epilogue) { visit(shape, epilogue); });
  });
}

bool takes_turns(const Settings& settings) { return settings.at("consumers") == "ping-pong"; }

/// Ping-pong consumers have one shape of their own.
void check_ping_pong(const Settings& settings) {
  using ping_pong::Shape;
  const auto refuse = [](const std::string& what, const std::string& why) {
    throw std::invalid_argument(what + ": with --consumers ping-pong " + why);
  };
  if (settings.at("slots") != lesson().settings().at("slots"))
    refuse("--slots " + settings.at("slots"),
           fmt::format("the ring has as many slots as fit, {}", Shape::kSlots));
  if (settings.at("ratio") != lesson().settings().at("ratio"))
    refuse("--ratio " + settings.at("ratio"), "it is always two warpgroups that compute");
}

std::string kilobytes(size_t bytes) { return ladder::fixed(double(bytes) / 1024, 0) + " KB"; }

void check(const Gemm& p, const Settings& settings) {
  ladder::require_tma(p, settings);
  if (takes_turns(settings)) return check_ping_pong(settings);
  visit_shape(settings, [&]<class Shape>(Shape) {
    using Smem = SharedStorage<Shape>;
    if (sizeof(Smem) > kMostSharedBytes)
      throw std::invalid_argument("--slots " + settings.at("slots") + ": with --ratio " +
                                  settings.at("ratio") + " a slot takes " +
                                  kilobytes(sizeof(Smem::a[0]) + sizeof(Smem::b[0])) + " and C " +
                                  kilobytes(sizeof(Smem::c)) + ", together more than the " +
                                  kilobytes(kMostSharedBytes) + " of shared memory that a block can have");
  });
}

/// Before a launch: what `check` cannot see because there are no matrices yet.
void check_bias(const Gemm& p, const Settings& settings) {
  check(p, settings);
  if (settings.at("epilogue") != "none" && !p.bias)
    throw std::invalid_argument("--epilogue " + settings.at("epilogue") +
                                ": needs a bias, which --a and --b do not bring");
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check_bias(p, settings);
  const int group = std::stoi(settings.at("group"));
  if (takes_turns(settings))
    return visit_epilogue(p, settings,
                          [&](const auto& epilogue) { ping_pong::launch_gemm(p, group, epilogue, stream); });
  visit_kernel(p, settings, [&]<class Shape>(Shape, const auto& epilogue) {
    launch_gemm<Shape>(p, group, epilogue, stream);
  });
}

ladder::Resources resources(const Settings& settings) {
  ladder::Resources result;
  const auto ask = [&]<class Shape>(Shape, auto* kernel, size_t shared_bytes) {
    result = ladder::kernel_resources(kernel, Shape::kThreads, shared_bytes,
                                      fmt::format("{}x{}", Shape::kTile.m, Shape::kTile.n));
  };
  if (takes_turns(settings)) {
    visit_epilogue({}, settings, [&]<class Epilogue>(const Epilogue&) {
      ask(ping_pong::Shape(), ping_pong::gemm<Epilogue>, sizeof(ping_pong::SharedStorage));
    });
  } else {
    visit_kernel({}, settings, [&]<class Shape, class Epilogue>(Shape shape, const Epilogue&) {
      ask(shape, gemm<Shape, Epilogue>, sizeof(SharedStorage<Shape>));
    });
  }
  return result;
}

ladder::ReferenceEpilogue reference_epilogue(const Settings& settings) {
  const std::string& epilogue = settings.at("epilogue");
  if (epilogue == "bias_relu")
    return {[](double sum, double bias) { return std::max(sum + bias, 0.0); }, /*exact=*/true};
  if (epilogue == "bias_gelu")
    return {[](double sum, double bias) {
              const double x = sum + bias, sqrt_2_over_pi = std::sqrt(2 / std::acos(-1.0));
              return x / 2 * (1 + std::tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
            },
            /*exact=*/false};
  return {};
}

/// A, B and the bias are read, C is written.
double global_bytes(const Gemm& p, const Settings& settings) {
  const double elements = double(p.m) * p.k + double(p.k) * p.n + double(p.m) * p.n;
  return (elements + (settings.at("epilogue") == "none" ? 0 : p.n)) * sizeof(__nv_bfloat16);
}

/// The plain kernel, then one that reads C and writes it again. Sums are rounded twice, so they are not
/// exact.
std::vector<ladder::Alternative> alternatives(const Settings& settings) {
  if (settings.at("epilogue") == "none") return {};
  Settings plain = settings;
  plain["epilogue"] = "none";
  return {{"separate kernels",
           [settings, plain](const Gemm& p, cudaStream_t stream) {
             check_bias(p, settings);
             launch(p, plain, stream);
             visit_epilogue(p, settings, [&](const auto& epilogue) { launch_epilogue(p, epilogue, stream); });
           },
           {reference_epilogue(settings).apply, /*exact=*/false, /*roundings=*/2},
           [settings](const Gemm& p) {
             return global_bytes(p, settings) + 2.0 * p.m * p.n * sizeof(__nv_bfloat16);
           }}};
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "05_ws_double_buffer",
      .idea = "The loader runs ahead of compute, through a ring of slots.",
      .knobs = {ladder::wgmma_knob(),
                {"slots", "tiles of A and B that shared memory holds", {"4", "2", "3", "5"}},
                {"consumers",
                 "whether both compute warpgroups share a tile, or take turns with tiles of 128x128",
                 {"together", "ping-pong"}},
                {"ratio",
                 "warpgroups that move to those that compute (tiles of 64x256, 128x256, 192x128)",
                 {"1:2", "1:1", "1:3"}},
                {"epilogue",
                 "what becomes of a sum before it is rounded",
                 {"none", "bias_relu", "bias_gelu"}},
                ladder::group_knob()},
      .rungs = {{"roles, ring of 4", {}}},
      .builds_on = {"03_double_buffer", "04_warp_specialized"},
      .minimum_compute_capability = 90,
      .check = check,
      .launch = launch,
      .resources = resources,
      .epilogue = reference_epilogue,
      .global_bytes = global_bytes,
      .alternatives = alternatives};
  return lesson;
}

}  // namespace lesson05
