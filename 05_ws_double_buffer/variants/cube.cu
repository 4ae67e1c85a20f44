/// @file
/// The kernels of the cube. They have the same tile, K depth, copies by TMA, grid and staged store. With
/// roles they are the steps of lesson 05; without, without_roles.cuh.
#include <fmt/core.h>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "05_ws_double_buffer/steps/1_ring.cuh"
#include "05_ws_double_buffer/variants/cube.hpp"
#include "05_ws_double_buffer/variants/in_flight.cuh"
#include "05_ws_double_buffer/variants/without_roles.cuh"
#include "common/cuda/kernel_resources.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson05::cube {
namespace {
using ladder::Gemm;
using ladder::Settings;
using ladder::TensorMaps;

/// Shared memory of a multiprocessor and what each block takes of it besides its own (CUDA C++ Programming
/// Guide, compute capability 9.0).
constexpr size_t kSmBytes = 228 * 1024, kReservedBytes = 1024;

/// Memory that a block asks for, so that exactly so many blocks fit on a multiprocessor: at least its own.
constexpr size_t shared_bytes(size_t own_bytes, int blocks_per_sm) {
  const size_t too_much_for_one_more = kSmBytes / (blocks_per_sm + 1) - kReservedBytes + 1024;
  return std::max(own_bytes, too_much_for_one_more);
}

/// A kernel of the cube.
struct Kernel {
  void (*gemm)(TensorMaps, Gemm);
  int threads;
  size_t own_bytes;
};

template <int kSlots>
Kernel kernel_of(bool roles, bool in_flight) {
  if (!roles) {
    const size_t bytes = sizeof(without_roles::SharedStorage<kSlots>);
    if constexpr (kSlots > 1)
      if (in_flight) return {without_roles::gemm<kSlots, 1>, without_roles::kThreads, bytes};
    return {without_roles::gemm<kSlots, 0>, without_roles::kThreads, bytes};
  }
  if constexpr (kSlots > 1)
    if (in_flight)
      return {in_flight::gemm<kSlots>, in_flight::kThreads, sizeof(in_flight::SharedStorage<kSlots>)};
  return {ring::gemm<kSlots>, ring::kThreads, sizeof(ring::SharedStorage<kSlots>)};
}

int blocks_of(const Settings& settings) { return std::stoi(settings.at("blocks")); }

Kernel kernel_of(const Settings& settings) {
  const bool roles = settings.at("roles") == "on", in_flight = settings.at("in_flight") == "1";
  const std::string& slots = settings.at("slots");
  if (slots == "1") return kernel_of<1>(roles, in_flight);
  if (slots == "2") return kernel_of<2>(roles, in_flight);
  if (slots == "3") return kernel_of<3>(roles, in_flight);
  return kernel_of<4>(roles, in_flight);
}

void check(const Gemm& p, const Settings& settings) {
  ladder::require_tma(p, settings);
  const std::string& slots = settings.at("slots");
  if (settings.at("in_flight") == "1" && slots == "1")
    throw std::invalid_argument("--in_flight 1: needs two slots, since a product in flight keeps its own");
  if (blocks_of(settings) * (kernel_of(settings).own_bytes + kReservedBytes) > kSmBytes)
    throw std::invalid_argument(
        fmt::format("--blocks {}: so many rings of {} slots do not fit on a multiprocessor",
                    settings.at("blocks"), slots));
}

size_t shared_bytes(const Settings& settings) {
  return shared_bytes(kernel_of(settings).own_bytes, blocks_of(settings));
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check(p, settings);
  constexpr ladder::TileShape kTile = ring::kTile;
  static_assert(kTile.m == without_roles::kTile.m && kTile.n == without_roles::kTile.n &&
                kTile.k == without_roles::kTile.k);
  const Kernel kernel = kernel_of(settings);
  const TensorMaps maps = {ladder::make_tensor_map(p.a, p.m, p.k, kTile.m, 64),
                           ladder::make_tensor_map(p.b, p.k, p.n, kTile.k, 64),
                           ladder::make_tensor_map(p.c, p.m, p.n, kTile.m, 64)};
  const int tiles = ladder::tiles_over(p.m, kTile.m) * ladder::tiles_over(p.n, kTile.n);
  const int resident = ladder::resident_blocks(kernel.gemm, kernel.threads, shared_bytes(settings));
  ladder::launch(kernel.gemm,
                 {.name = "05_cube",
                  .grid = dim3(static_cast<unsigned>(std::min(tiles, resident))),
                  .block = dim3(static_cast<unsigned>(kernel.threads)),
                  .shared_bytes = shared_bytes(settings),
                  .stream = stream},
                 maps, p);
}

ladder::Resources resources(const Settings& settings) {
  const Kernel kernel = kernel_of(settings);
  return ladder::kernel_resources(kernel.gemm, kernel.threads, shared_bytes(settings), "128x128");
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "05_cube",
      .idea = "Roles, a ring of slots, a second block on a multiprocessor: each alone, and together.",
      .knobs = {ladder::wgmma_knob(),
                {"roles",
                 "whether one warp only loads and one only stores, or all warps do all",
                 {"on", "off"}},
                {"slots", "tiles of A and B that shared memory holds", {"4", "1", "2", "3"}},
                {"blocks", "blocks on a multiprocessor", {"1", "2"}},
                {"in_flight", "products that are unfinished when the next one is started", {"0", "1"}}},
      .rungs = {},
      .minimum_architecture = ladder::kHopper,
      .check = check,
      .launch = launch,
      .resources = resources};
  return lesson;
}

}  // namespace lesson05::cube
