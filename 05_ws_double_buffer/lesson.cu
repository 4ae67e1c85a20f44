/// @file
/// Lesson 05 for the programs: its knobs, its rung, its limits, and the kernel behind each choice.
#include <fmt/core.h>
#include <map>
#include <stdexcept>
#include <type_traits>

#include "04_warp_specialized/variants/roles_without_wgmma.cuh"
#include "05_ws_double_buffer/choice_of_tile.cuh"
#include "05_ws_double_buffer/gemm.cuh"
#include "05_ws_double_buffer/steps/1_ring.cuh"
#include "05_ws_double_buffer/steps/2_pieces.cuh"
#include "05_ws_double_buffer/steps/3_wide_tile.cuh"
#include "05_ws_double_buffer/variants/ping_pong.cuh"
#include "05_ws_double_buffer/variants/ratios.cuh"
#include "05_ws_double_buffer/variants/separate_epilogue.cuh"
#include "common/cuda/kernel_resources.hpp"
#include "common/device/epilogue_functors.cuh"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/epilogues.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson05 {
namespace {
using ladder::Settings;
using ratios::kMaxSharedBytes;
namespace without_wgmma = lesson04::without_wgmma;

bool is_default(const Settings& settings, const std::string& knob) {
  return settings.at(knob) == lesson().default_of(knob);
}

/// Whether the lesson's own kernel runs, or a step to it.
bool is_plain(const Settings& settings) {
  return is_default(settings, "consumers") && is_default(settings, "ratio") &&
         is_default(settings, "epilogue") && is_default(settings, "group") &&
         is_default(settings, "in_flight");
}

bool is_step(const Settings& settings) { return !is_default(settings, "step"); }

/// Where the knob `tile` leaves a choice.
bool has_wide_tile(const Settings& settings) {
  return settings.at("step") == "registers" || settings.at("step") == "wide";
}

/// Whose kernel runs: with the narrow tile it is that of step 2.
std::string plain_kernel(const Settings& settings) {
  return settings.at("tile") == "128x128" ? "pieces" : settings.at("step");
}

bool has_wgmma(const Settings& settings) { return ladder::usable_core(settings) == "wgmma"; }

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

/// The same without wgmma, for two slots and more. The default is then as many as the GPU has room for, up to
/// its number.
template <class Visit>
void visit_slots_without_wgmma(const Settings& settings, const Visit& visit) {
  const std::string& chosen = settings.at("slots");
  const int fitting =
      without_wgmma::slots_that_fit(std::stoi(chosen), ladder::device_info().block_shared_bytes);
  visit_slots(chosen == lesson().default_of("slots") ? std::to_string(fitting) : chosen, [&](auto slots) {
    if constexpr (slots() > 1) visit(slots);
  });
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

/// Calls visit(kernel, its launcher, its threads, its shared memory, its tile) for the lesson's own kernel or
/// a step to it. Only rings that fit into shared memory are compiled.
template <class Visit>
void visit_plain(const Settings& settings, const Visit& visit) {
  const std::string kernel = plain_kernel(settings);
  visit_slots(settings, [&](auto slots) {
    constexpr int kSlots = slots();
    if (kernel == "ring")
      visit(ring::gemm<kSlots>, ring::launch_gemm<kSlots>, ring::kThreads,
            sizeof(ring::SharedStorage<kSlots>), ring::kTile);
    if (kernel == "pieces")
      visit(pieces::gemm<kSlots>, pieces::launch_gemm<kSlots>, pieces::kThreads,
            sizeof(pieces::SharedStorage<kSlots>), pieces::kTile);
    if constexpr (sizeof(SharedStorage<kSlots>) <= kMaxSharedBytes) {
      if (kernel == "wide")
        visit(wide_tile::gemm<kSlots>, wide_tile::launch_gemm<kSlots>, wide_tile::kThreads,
              sizeof(wide_tile::SharedStorage<kSlots>), wide_tile::kTile);
      if (kernel == "registers")
        visit(gemm<kSlots>, launch_gemm<kSlots>, kThreads, sizeof(SharedStorage<kSlots>), kTile);
    }
  });
}

/// Whether the tile is chosen for each product.
bool chooses_tile(const Settings& settings) {
  return is_plain(settings) && settings.at("tile") == "auto" && has_wide_tile(settings);
}

/// Where it is: the rule.
bool (*rule_of(const Settings& settings))(const Gemm&) {
  bool (*rule)(const Gemm&) = nullptr;
  visit_slots(settings, [&](auto slots) {
    if constexpr (sizeof(SharedStorage<slots()>) <= kMaxSharedBytes) rule = wide_tile_pays<slots()>;
  });
  return rule;
}

/// visit(shape, epilogue), for shapes that fit into shared memory; no kernel is compiled for others.
template <class Visit>
void visit_kernel(const Gemm& p, const Settings& settings, const Visit& visit) {
  visit_shape(settings, [&]<class Shape>(Shape shape) {
    if constexpr (sizeof(ratios::SharedStorage<Shape>) <= kMaxSharedBytes)
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
  if (settings.at("slots") != lesson().default_of("slots"))
    refuse("--slots " + settings.at("slots"),
           fmt::format("the ring has as many slots as fit, {}", Shape::kSlots));
  if (settings.at("ratio") != lesson().default_of("ratio"))
    refuse("--ratio " + settings.at("ratio"), "it is always two warpgroups that compute");
}

std::string kilobytes(size_t bytes) { return ladder::fixed(double(bytes) / 1024, 0) + " KB"; }

/// @param slot_bytes, other_bytes shared memory of one slot, and of all else
void require_shared_memory(const Settings& settings, size_t slot_bytes, size_t other_bytes) {
  const size_t bytes = std::stoul(settings.at("slots")) * slot_bytes + other_bytes;
  if (bytes <= kMaxSharedBytes) return;
  throw std::invalid_argument("--slots " + settings.at("slots") + ": with --ratio " + settings.at("ratio") +
                              " a slot takes " + kilobytes(slot_bytes) + " and C " + kilobytes(other_bytes) +
                              ", together more than the " + kilobytes(kMaxSharedBytes) +
                              " of shared memory that a block can have");
}

void check_plain(const Settings& settings) {
  const std::string kernel = plain_kernel(settings);
  const ladder::TileShape& tile = kernel == "registers" || kernel == "wide" ? kTile : ring::kTile;
  require_shared_memory(settings, sizeof(__nv_bfloat16) * tile.k * (tile.m + tile.n),
                        sizeof(SharedStorage<1>::c) + sizeof(ladder::Pipeline<6>));
}

/// Roles without wgmma are those of the lesson's own kernel alone.
void check_without_wgmma(const Settings& settings) {
  for (const char* const knob : {"step", "tile", "consumers", "ratio", "epilogue", "in_flight"})
    if (settings.at(knob) != lesson().default_of(knob))
      throw std::invalid_argument(fmt::format("--{} {}: only with --core wgmma", knob, settings.at(knob)));
  if (settings.at("slots") == "1")
    throw std::invalid_argument("--slots 1: only with --core wgmma; without it, lesson 04 has one slot");
  visit_slots_without_wgmma(settings, [&](auto slots) {
    ladder::require_shared_memory("--slots " + settings.at("slots"),
                                  sizeof(without_wgmma::SharedStorage<without_wgmma::Ring<slots()>>));
  });
}

void check_settings(const Settings& settings) {
  ladder::usable_loader(settings);
  if (!has_wgmma(settings)) return check_without_wgmma(settings);
  ladder::require_tma(settings);
  if (is_step(settings) && !is_plain(settings))
    throw std::invalid_argument(fmt::format(
        "--step {}: has --slots, and none of --consumers, --ratio, --epilogue, --group and --in_flight",
        settings.at("step")));
  if (!is_default(settings, "tile") && (!has_wide_tile(settings) || !is_plain(settings)))
    throw std::invalid_argument(fmt::format(
        "--tile {}: goes with --slots and --step wide, and with none of --step ring, --step pieces, "
        "--consumers, --ratio, --epilogue, --group and --in_flight",
        settings.at("tile")));
  if (takes_turns(settings)) return check_ping_pong(settings);
  if (is_plain(settings)) return check_plain(settings);
  if (settings.at("slots") == "1")
    throw std::invalid_argument(
        "--slots 1: only with --ratio 1:2, --epilogue none, --consumers together, --group 16 and --in_flight "
        "auto");
  visit_shape(settings, [&]<class Shape>(Shape) {
    using Smem = ratios::SharedStorage<Shape>;
    const size_t slot_bytes = sizeof(Smem::a[0]) + sizeof(Smem::b[0]);
    require_shared_memory(settings, slot_bytes, sizeof(Smem) - Shape::kSlots * slot_bytes);
  });
}

void check(const Gemm& p, const Settings& settings) {
  check_settings(settings);
  has_wgmma(settings) ? ladder::require_tma_rows(p) : ladder::require_chunks(p);
}

/// The lesson's own kernel or a step to it, also where the tile is chosen for each product.
ladder::Launcher plain_launcher(const Settings& settings) {
  const auto with_tile = [&](Settings chosen, const std::string& tile) {
    if (chooses_tile(settings)) chosen["tile"] = tile;
    void (*result)(const Gemm&, cudaStream_t) = nullptr;
    visit_plain(chosen, [&](auto*, auto* launch_it, auto&&...) { result = launch_it; });
    return result;
  };
  return [pays = chooses_tile(settings) ? rule_of(settings) : nullptr, wide = with_tile(settings, "128x256"),
          narrow = with_tile(settings, "128x128")](const Gemm& p, cudaStream_t stream) {
    ladder::require_tma_rows(p);
    !pays || pays(p) ? wide(p, stream) : narrow(p, stream);
  };
}

/// The functor of the epilogue `name` with this product's bias.
template <class Epilogue>
Epilogue with_bias(const Gemm& p, const std::string& name) {
  if constexpr (std::is_same_v<Epilogue, ladder::Identity>) {
    return {};
  } else {
    ladder::require_bias(p, name);
    return {p.bias, p.n};
  }
}

ladder::Launcher launcher_of(const Settings& settings) {
  check_settings(settings);
  if (is_plain(settings) && has_wgmma(settings) && !takes_turns(settings)) return plain_launcher(settings);
  const int group = std::stoi(settings.at("group"));
  const std::string& epilogue = settings.at("epilogue");
  ladder::Launcher launcher;
  if (!has_wgmma(settings))
    visit_slots_without_wgmma(settings, [&](auto slots) {
      using Ring = without_wgmma::Ring<slots()>;
      without_wgmma::visit_loader<Ring>(ladder::usable_loader(settings), [&]<class Loader>(Loader) {
        launcher = [group](const Gemm& p, cudaStream_t stream) {
          ladder::require_chunks(p);
          without_wgmma::launch_gemm<Loader, Ring>(p, group, stream);
        };
      });
    });
  else if (takes_turns(settings))
    visit_epilogue({}, settings, [&]<class Epilogue>(const Epilogue&) {
      launcher = [group, epilogue](const Gemm& p, cudaStream_t stream) {
        ladder::require_tma_rows(p);
        ping_pong::launch_gemm(p, group, with_bias<Epilogue>(p, epilogue), stream);
      };
    });
  else
    visit_kernel({}, settings, [&]<class Shape, class Epilogue>(Shape, const Epilogue&) {
      launcher = [group, epilogue](const Gemm& p, cudaStream_t stream) {
        ladder::require_tma_rows(p);
        ratios::launch_gemm<Shape>(p, group, with_bias<Epilogue>(p, epilogue), stream);
      };
    });
  return launcher;
}

ladder::Resources resources(const Settings& settings) {
  ladder::Resources result;
  const auto ask = [&](auto* kernel, int threads, size_t shared_bytes, const ladder::TileShape& tile) {
    result = ladder::kernel_resources(kernel, threads, shared_bytes, fmt::format("{}x{}", tile.m, tile.n));
  };
  if (!has_wgmma(settings)) {
    visit_slots_without_wgmma(settings, [&](auto slots) {
      using Ring = without_wgmma::Ring<slots()>;
      without_wgmma::visit_loader<Ring>(ladder::usable_loader(settings), [&]<class Loader>(Loader) {
        ask(without_wgmma::gemm<Loader, Ring>, without_wgmma::kThreads<Loader>,
            sizeof(without_wgmma::SharedStorage<Ring>), Ring::kTile);
      });
    });
  } else if (takes_turns(settings)) {
    using ping_pong::Shape;
    visit_epilogue({}, settings, [&]<class Epilogue>(const Epilogue&) {
      ask(ping_pong::gemm<Epilogue>, Shape::kThreads, sizeof(ping_pong::SharedStorage), Shape::kTile);
    });
  } else if (is_plain(settings)) {
    visit_plain(settings, [&](auto* kernel, auto*, int threads, size_t shared_bytes, const auto& tile) {
      ask(kernel, threads, shared_bytes, tile);
    });
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
           [settings, plain, launch = ladder::Launcher()](const Gemm& p, cudaStream_t stream) mutable {
             ladder::require_bias(p, settings);
             if (!launch) launch = launcher_of(plain);
             launch(p, stream);
             visit_epilogue(p, settings, [&](const auto& epilogue) { launch_epilogue(p, epilogue, stream); });
           },
           {ladder::reference_epilogue(settings).apply, /*exact=*/false, /*roundings=*/2},
           [settings](const Gemm& p) {
             return global_bytes(p, settings) + 2.0 * p.m * p.n * sizeof(__nv_bfloat16);
           }}};
}

/// Where the rule takes the narrow tile.
std::string remark(const ladder::Shape& shape, const Settings& settings) {
  if (!has_wgmma(settings) || !chooses_tile(settings) ||
      rule_of(settings)({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k}))
    return "";
  return "05: too few tiles of 128x256 for all multiprocessors, so that --tile auto takes 128x128";
}

/// Of the variants nothing: they leave no choice.
ladder::TakenKernel taken(const ladder::Shape& shape, const Settings& settings) {
  if (!has_wgmma(settings) || !is_plain(settings)) return {};
  static const std::map<std::string, std::string> ids = {
      {"ring", "05.1"}, {"pieces", "05.2"}, {"wide", "05.3"}, {"registers", "05"}};
  Settings forced = settings;
  if (chooses_tile(settings)) {
    const bool is_wide = rule_of(settings)({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k});
    forced["tile"] = is_wide ? "128x256" : "128x128";
  }
  std::string command = lesson().name;
  for (const char* const knob : {"slots", "step", "tile"})
    if (!is_default(forced, knob)) command += fmt::format(" --{} {}", knob, forced.at(knob));
  return {ids.at(plain_kernel(forced)), command, plain_launcher(forced)};
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "05_ws_double_buffer",
      .idea = "The loader runs ahead of compute, through a ring of slots.",
      .knobs =
          {ladder::roles_core_knob(),
           ladder::loader_knob(),
           {"step",
            "how far the lesson has come: registers is its kernel, the others are the steps to it",
            {"registers", "wide", "pieces", "ring"}},
           {"tile",
            "of the lesson's kernel and of --step wide; auto: 128x256 where every multiprocessor gets one, "
            "else the tile and the kernel of --step pieces",
            {"auto", "128x256", "128x128"}},
           {"slots", "tiles of A and B that shared memory holds", {"4", "1", "2", "3", "5"}},
           {"consumers",
            "whether both compute warpgroups share a tile, or take turns with tiles of 128x128",
            {"together", "ping-pong"}},
           {"ratio",
            "warpgroups that move data : that compute (tiles of 64x256, 128x256, 192x128)",
            {"1:2", "1:1", "1:3"}},
           ladder::epilogue_knob(),
           ladder::group_knob(),
           {"in_flight",
            "auto: the lesson's own kernel, unless another knob asks for a variant; 1: always a "
            "variant, which "
            "keeps a product in flight and has a storer for each compute warpgroup",
            {"auto", "1"}}},
      .rungs = {{.label = "ring of 4",
                 .settings = {{"step", "ring"}},
                 .id = "05.1",
                 .source = "steps/1_ring.cuh",
                 .cause = "a ring of slots between the roles: the loader runs ahead",
                 .core = "wgmma"},
                {.label = "two staging tiles",
                 .settings = {{"step", "pieces"}},
                 .id = "05.2",
                 .source = "steps/2_pieces.cuh",
                 .cause = "a ring of two staging tiles: C is handed over in pieces",
                 .core = "wgmma"},
                {.label = "a tile twice as wide",
                 .settings = {{"step", "wide"}},
                 .id = "05.3",
                 .source = "steps/3_wide_tile.cuh",
                 .cause = "128 x 256 sums: each element of A is used twice as often",
                 .core = "wgmma"},
                {.label = "registers move",
                 .settings = {},
                 .id = "05",
                 .cause = "warps that move data give registers to compute: room for a longer epilogue",
                 .core = "wgmma"},
                {.label = "roles and a ring",
                 .settings = {},
                 .id = "05",
                 .source = "../04_warp_specialized/variants/roles_without_wgmma.cuh",
                 .cause = "a ring of slots between the roles, and a tile 1.5 times as wide",
                 .core = "mma_sync"}},
      .builds_on = {"04_warp_specialized"},
      .minimum_architecture = ladder::kAmpere,
      .check = check,
      .launch = launcher_of,
      .resources = resources,
      .epilogue = ladder::reference_epilogue,
      .global_bytes = global_bytes,
      .alternatives = alternatives,
      .remark = remark,
      .taken = taken};
  return lesson;
}

}  // namespace lesson05
