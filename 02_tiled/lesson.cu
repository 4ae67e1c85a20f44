/// @file
/// Lesson 02 for the programs: its knobs, its rungs, and the kernel behind each choice.
#include <stdexcept>
#include <string>

#include "02_tiled/gemm.cuh"
#include "02_tiled/steps/1_shared_tile.cuh"
#include "02_tiled/steps/2_register_tile.cuh"
#include "02_tiled/steps/3_swizzled_tile.cuh"
#include "02_tiled/steps/4_tile_order.cuh"
#include "common/device/cores.cuh"
#include "common/host/device/device.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson02 {
namespace {

/// Each row of A and B starts at a multiple of 16 bytes.
bool has_aligned_rows(const Gemm& p) { return p.n % TileB::kChunk == 0 && p.k % TileA::kChunk == 0; }

/// @tparam UnalignedCore for rows that chunks do not fit into: loading them takes more registers
template <class Core, class UnalignedCore = Core>
void launch_with(const Gemm& p, cudaStream_t stream) {
  has_aligned_rows(p) ? launch_gemm<Core, true>(p, stream) : launch_gemm<UnalignedCore, false>(p, stream);
}

/// The kernel of gemm.cuh; the other steps lead to it.
bool is_last_step(const ladder::Settings& settings) { return settings.at("step") == "core"; }

/// What multiplies. The steps before the last one do it with CUDA cores.
std::string core_of(const ladder::Settings& settings) {
  return is_last_step(settings) ? ladder::resolve_core(settings.at("core")) : "fma";
}

/// The core must be there, and be that of the step. Steps whose grid has two dimensions limit m, and those
/// that copy chunks want aligned matrices.
void check(const Gemm& p, const ladder::Settings& settings) {
  const std::string &core = settings.at("core"), &step = settings.at("step");
  if (!is_last_step(settings) && core != "auto" && core != "fma")
    throw std::invalid_argument("--core " + core + ": only with --step core; --step " + step +
                                " multiplies with CUDA cores");
  ladder::usable_core(settings);
  if (step == "shared_tile") ladder::require_grid_rows("m", p.m, shared_tile::kTile.m);
  if (step == "register_tile" || step == "swizzled_tile")
    ladder::require_grid_rows("m", p.m, register_tile::kTile.m);
  if (step != "shared_tile" && step != "register_tile") ladder::require_aligned_matrices(p);
}

void launch_last_step(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  const std::string core = ladder::usable_core(settings);
  if (core == "wgmma") launch_with<ladder::WgmmaCore<kTile.n>>(p, stream);
  if (core == "mma_sync") launch_with<MmaSyncCore<kTile.n>, MmaSyncCore<kTile.n, 64, 32>>(p, stream);
  if (core == "fma") launch_with<ladder::FmaCore<kTile.n>>(p, stream);
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const std::string& step = settings.at("step");
  if (step == "shared_tile") shared_tile::launch_gemm(p, stream);
  if (step == "register_tile") register_tile::launch_gemm(p, stream);
  if (step == "swizzled_tile")
    has_aligned_rows(p) ? swizzled_tile::launch_gemm<true>(p, stream)
                        : swizzled_tile::launch_gemm<false>(p, stream);
  if (step == "tile_order")
    has_aligned_rows(p) ? tile_order::launch_gemm<true>(p, stream)
                        : tile_order::launch_gemm<false>(p, stream);
  if (step == "core") launch_last_step(p, settings, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "02_tiled",
      .idea = "A block keeps a tile of A and of B in shared memory and uses every element 128 times.",
      .knobs =
          {ladder::core_knob(),
           {"step",
            "how far the lesson has come: core is its kernel, multiplied by what --core names; the steps "
            "before it multiply with CUDA cores",
            {"core", "tile_order", "swizzled_tile", "register_tile", "shared_tile"}}},
      .rungs =
          {{.label = "shared tile",
            .settings = {{"step", "shared_tile"}},
            .id = "02.1",
            .source = "steps/1_shared_tile.cuh",
            .cause = "a tile in shared memory, read by all threads of the block"},
           {.label = "register tile",
            .settings = {{"step", "register_tile"}},
            .id = "02.2",
            .source = "steps/2_register_tile.cuh",
            .cause = "a tile in registers: each thread keeps 8 x 8 sums"},
           {.label = "swizzled tile",
            .settings = {{"step", "swizzled_tile"}},
            .id = "02.3",
            .source = "steps/3_swizzled_tile.cuh",
            .cause = "chunks of 16 bytes, at swizzled places in shared memory"},
           {.label = "tile order",
            .settings = {{"step", "tile_order"}},
            .id = "02.4",
            .source = "steps/4_tile_order.cuh",
            .cause = "blocks that run together compute neighbouring tiles, for L2"},
           {.label = "tensor cores", .settings = {}, .id = "02", .cause = "tensor cores multiply the tile"}},
      .builds_on = {"01_naive"},
      .check = check,
      .launch = launch,
      .core = core_of,
      .cpu_check_few = {40, 136, 40}};
  return lesson;
}

}  // namespace lesson02
