/// @file
/// Lesson 05 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <fmt/core.h>
#include <stdexcept>
#include <type_traits>

#include "04_warp_specialized/variants/roles_without_tma.cuh"
#include "05_ws_double_buffer/gemm.cuh"
#include "05_ws_double_buffer/variants/ping_pong.cuh"
#include "05_ws_double_buffer/variants/ratios.cuh"
#include "05_ws_double_buffer/variants/separate_epilogue.cuh"
#include "common/cuda/kernel_resources.hpp"
#include "common/device/epilogue_functors.cuh"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/epilogues.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson05 {
namespace {
using ladder::Settings;
using ratios::kMostSharedBytes;
namespace without_tma = lesson04::without_tma;

/// Whether the lesson's own kernel runs.
bool is_plain(const Settings& settings) {
  return settings.at("consumers") == "together" && settings.at("ratio") == "1:2" &&
         settings.at("epilogue") == "none";
}

bool has_tma(const Settings& settings) { return ladder::usable_loader(settings) == "tma"; }

/// Calls visit(slots), an integral constant, for the slots that are chosen.
template <class Visit>
void visit_slots(const std::string& slots, const Visit& visit) {
  if (slots == "1") visit(std::integral_constant<int, 1>());
  if (slots == "2") visit(std::integral_constant<int, 2>());
  if (slots == "3") visit(std::integral_constant<int, 3>());
  if (slots == "4") visit(std::integral_constant<int, 4>());
  if (slots == "5") visit(std::integral_constant<int, 5>());
}

template <class Visit>
void visit_slots(const Settings& settings, const Visit& visit) {
  visit_slots(settings.at("slots"), visit);
}

/// The same without TMA. The default is then as many slots as the GPU has room for, up to its number.
template <class Visit>
void visit_slots_without_tma(const Settings& settings, const Visit& visit) {
  const std::string& chosen = settings.at("slots");
  const int fitting =
      without_tma::slots_that_fit<kTile.k>(std::stoi(chosen), ladder::device_info().block_shared_bytes);
  visit_slots(chosen == lesson().settings().at("slots") ? std::to_string(fitting) : chosen, visit);
}

/// Calls visit(ratios::Shape<...>()) for the shape that `ratio` and `slots` choose. Its kernels need two
/// slots.
template <class Visit>
void visit_shape(const Settings& settings, const Visit& visit) {
  visit_slots(settings, [&](auto slots) {
    if constexpr (slots() > 1) {
      const std::string& ratio = settings.at("ratio");
      if (ratio == "1:1") visit(ratios::Shape<1, slots()>());
      if (ratio == "1:2") visit(ratios::Shape<2, slots()>());
      if (ratio == "1:3") visit(ratios::Shape<3, slots()>());
    }
  });
}

/// Calls visit(epilogue) with the functor that `epilogue` chooses.
template <class Visit>
void visit_epilogue(const Gemm& p, const Settings& settings, const Visit& visit) {
  ladder::visit_epilogue(settings.at("epilogue"), p.bias, p.n, visit);
}

/// visit(slots), for rings that fit into shared memory.
template <class Visit>
void visit_plain(const Settings& settings, const Visit& visit) {
  visit_slots(settings, [&](auto slots) {
    if constexpr (sizeof(SharedStorage<slots()>) <= kMostSharedBytes) visit(slots);
  });
}

/// visit(shape, epilogue), for shapes that fit into shared memory; no kernel is compiled for others.
template <class Visit>
void visit_kernel(const Gemm& p, const Settings& settings, const Visit& visit) {
  visit_shape(settings, [&]<class Shape>(Shape shape) {
    if constexpr (sizeof(ratios::SharedStorage<Shape>) <= kMostSharedBytes)
      visit_epilogue(p, settings, [&]<class Epilogue>(const Epilogue& epilogue) {
        // The lesson has that kernel.
        if constexpr (Shape::kWarpgroups != 2 || !std::is_same_v<Epilogue, ladder::Identity>)
          visit(shape, epilogue);
      });
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

/// @param of_c, of_slot bytes of shared memory
void require_shared_memory(const Settings& settings, size_t bytes, size_t of_slot, size_t of_c) {
  if (bytes <= kMostSharedBytes) return;
  throw std::invalid_argument("--slots " + settings.at("slots") + ": with --ratio " + settings.at("ratio") +
                              " a slot takes " + kilobytes(of_slot) + " and C " + kilobytes(of_c) +
                              ", together more than the " + kilobytes(kMostSharedBytes) +
                              " of shared memory that a block can have");
}

/// Roles without TMA are those of the lesson's own kernel alone.
void check_without_tma(const Gemm& p, const Settings& settings) {
  ladder::require_chunks(p);
  for (const char* const knob : {"consumers", "ratio", "epilogue"})
    if (settings.at(knob) != lesson().settings().at(knob))
      throw std::invalid_argument(
          fmt::format("--{} {}: only with TMA and --core wgmma", knob, settings.at(knob)));
  visit_slots_without_tma(settings, [&](auto slots) {
    ladder::require_shared_memory("--slots " + settings.at("slots"),
                                  sizeof(without_tma::SharedStorage<slots(), kTile.k>));
  });
}

void check(const Gemm& p, const Settings& settings) {
  if (!has_tma(settings)) return check_without_tma(p, settings);
  ladder::require_tma(p, settings);
  if (takes_turns(settings)) return check_ping_pong(settings);
  if (is_plain(settings))
    return visit_slots(settings, [&](auto slots) {
      using Smem = SharedStorage<slots()>;
      require_shared_memory(settings, sizeof(Smem), sizeof(Smem::a[0]) + sizeof(Smem::b[0]), sizeof(Smem::c));
    });
  if (settings.at("slots") == "1")
    throw std::invalid_argument("--slots 1: only with --ratio 1:2, --epilogue none and --consumers together");
  visit_shape(settings, [&]<class Shape>(Shape) {
    using Smem = ratios::SharedStorage<Shape>;
    require_shared_memory(settings, sizeof(Smem), sizeof(Smem::a[0]) + sizeof(Smem::b[0]), sizeof(Smem::c));
  });
}

/// Before a launch: what `check` cannot see because there are no matrices yet.
void check_bias(const Gemm& p, const Settings& settings) {
  check(p, settings);
  ladder::require_bias(p, settings);
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check_bias(p, settings);
  const int group = std::stoi(settings.at("group"));
  if (!has_tma(settings))
    return visit_slots_without_tma(
        settings, [&](auto slots) { without_tma::launch_gemm<slots(), kTile.k>(p, group, stream); });
  if (takes_turns(settings))
    return visit_epilogue(p, settings,
                          [&](const auto& epilogue) { ping_pong::launch_gemm(p, group, epilogue, stream); });
  if (is_plain(settings))
    return visit_plain(settings, [&](auto slots) { launch_gemm<slots()>(p, group, stream); });
  visit_kernel(p, settings, [&]<class Shape>(Shape, const auto& epilogue) {
    ratios::launch_gemm<Shape>(p, group, epilogue, stream);
  });
}

ladder::Resources resources(const Settings& settings) {
  ladder::Resources result;
  const auto ask = [&](auto* kernel, int threads, size_t shared_bytes, const ladder::TileShape& tile) {
    result = ladder::kernel_resources(kernel, threads, shared_bytes, fmt::format("{}x{}", tile.m, tile.n));
  };
  if (!has_tma(settings)) {
    visit_slots_without_tma(settings, [&](auto slots) {
      ask(without_tma::gemm<slots(), kTile.k>, without_tma::kThreads,
          sizeof(without_tma::SharedStorage<slots(), kTile.k>), without_tma::kTile);
    });
  } else if (takes_turns(settings)) {
    using ping_pong::Shape;
    visit_epilogue({}, settings, [&]<class Epilogue>(const Epilogue&) {
      ask(ping_pong::gemm<Epilogue>, Shape::kThreads, sizeof(ping_pong::SharedStorage), Shape::kTile);
    });
  } else if (is_plain(settings)) {
    visit_plain(settings,
                [&](auto slots) { ask(gemm<slots()>, kThreads, sizeof(SharedStorage<slots()>), kTile); });
  } else {
    visit_kernel({}, settings, [&]<class Shape, class Epilogue>(Shape, const Epilogue&) {
      ask(ratios::gemm<Shape, Epilogue>, Shape::kThreads, sizeof(ratios::SharedStorage<Shape>), Shape::kTile);
    });
  }
  return result;
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
           {ladder::reference_epilogue(settings).apply, /*exact=*/false, /*roundings=*/2},
           [settings](const Gemm& p) {
             return global_bytes(p, settings) + 2.0 * p.m * p.n * sizeof(__nv_bfloat16);
           }}};
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "05_ws_double_buffer",
      .idea = "The loader runs ahead of compute, through a ring of slots.",
      .knobs = {ladder::roles_core_knob(),
                ladder::loader_knob(),
                {"slots", "tiles of A and B that shared memory holds", {"4", "1", "2", "3", "5"}},
                {"consumers",
                 "whether both compute warpgroups share a tile, or take turns with tiles of 128x128",
                 {"together", "ping-pong"}},
                {"ratio",
                 "warpgroups that move data : that compute (tiles of 64x256, 128x256, 192x128)",
                 {"1:2", "1:1", "1:3"}},
                ladder::epilogue_knob(),
                ladder::group_knob()},
      .rungs = {{"roles, ring of 4", {}}},
      .builds_on = {"03_double_buffer", "04_warp_specialized"},
      .minimum_architecture = ladder::kAmpere,
      .check = check,
      .launch = launch,
      .resources = resources,
      .epilogue = ladder::reference_epilogue,
      .global_bytes = global_bytes,
      .alternatives = alternatives};
  return lesson;
}

}  // namespace lesson05
