/// @file
/// Lesson 02 for the programs: its knobs, its rungs, and the kernel behind each choice.
#include <stdexcept>
#include <string>

#include "02_tiled/gemm.cuh"
#include "02_tiled/steps/1_shared_tile.cuh"
#include "02_tiled/steps/2_register_tile.cuh"
#include "02_tiled/steps/3_chunks.cuh"
#include "02_tiled/steps/4_tensor_cores.cuh"
#include "02_tiled/steps/5_loads_in_flight.cuh"
#include "02_tiled/variants/other_cores.cuh"
#include "common/device/cores.cuh"
#include "common/host/device/device.hpp"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson02 {
namespace {

/// Whether what --core names multiplies. The steps before do it with CUDA cores.
bool has_core(const ladder::Settings& settings) {
  const std::string& step = settings.at("step");
  return step == "core" || step == "loads_in_flight" || step == "tensor_cores";
}

std::string core_of(const ladder::Settings& settings) {
  return has_core(settings) ? ladder::resolve_core(settings.at("core")) : "fma";
}

/// A kernel, and what it wants of a product.
struct Kernel {
  void (*launch)(const Gemm&, cudaStream_t);
  bool copies_chunks = true;
  int grid_rows_of = 0;  ///< rows of C that a row of blocks computes, where the grid has two dimensions

  void require(const Gemm& p) const {
    if (grid_rows_of > 0) ladder::require_grid_rows("m", p.m, grid_rows_of);
    if (copies_chunks) ladder::require_chunks(p);
  }
};

/// The kernel of the step. The core must be there, and be that of the step.
Kernel kernel_of(const ladder::Settings& settings) {
  const std::string &chosen = settings.at("core"), &step = settings.at("step");
  if (!has_core(settings) && chosen != "auto" && chosen != "fma")
    throw std::invalid_argument("--core " + chosen + ": only with --step core; --step " + step +
                                " multiplies with CUDA cores");
  const std::string core = ladder::usable_core(settings);
  if (step == "shared_tile") return {shared_tile::launch_gemm, false, shared_tile::kTile.m};
  if (step == "register_tile") return {register_tile::launch_gemm, false, register_tile::kTile.m};
  if (step == "chunks") return {chunks::launch_gemm, true, chunks::kTile.m};
  if (step == "tensor_cores" && core == "wgmma")
    return {tensor_cores::launch_gemm, true, tensor_cores::kTile.m};
  if (step == "loads_in_flight" && core == "wgmma")
    return {loads_in_flight::launch_gemm, true, loads_in_flight::kTile.m};
  // The other cores have one kernel for the last three steps.
  if (core == "wgmma") return {launch_gemm};
  if (core == "mma_sync") return {other_cores::launch_gemm<ladder::MmaSyncCore<kTile.n>>};
  return {other_cores::launch_gemm<ladder::FmaCore<kTile.n>>};
}

void check(const Gemm& p, const ladder::Settings& settings) { kernel_of(settings).require(p); }

ladder::Launcher launcher_of(const ladder::Settings& settings) {
  return [kernel = kernel_of(settings)](const Gemm& p, cudaStream_t stream) {
    kernel.require(p);
    kernel.launch(p, stream);
  };
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "02_tiled",
      .idea = "A block keeps a tile of A and of B in shared memory and uses every element 128 times.",
      .knobs =
          {ladder::core_knob(),
           {"step",
            "how far the lesson has come: core is its kernel; it and the two steps before multiply by what "
            "--core names, the first three with CUDA cores",
            {"core", "loads_in_flight", "tensor_cores", "chunks", "register_tile", "shared_tile"}}},
      .rungs = {{.label = "shared tile",
                 .settings = {{"step", "shared_tile"}},
                 .id = "02.1",
                 .source = "steps/1_shared_tile.cuh",
                 .cause = "a tile in shared memory, read by all threads of the block"},
                {.label = "register tile",
                 .settings = {{"step", "register_tile"}},
                 .id = "02.2",
                 .source = "steps/2_register_tile.cuh",
                 .cause = "a tile in registers: each thread keeps 8 x 8 sums"},
                {.label = "chunks",
                 .settings = {{"step", "chunks"}},
                 .id = "02.3",
                 .source = "steps/3_chunks.cuh",
                 .cause = "a thread copies chunks of 16 bytes instead of elements"},
                {.label = "tensor cores",
                 .settings = {{"step", "tensor_cores"}},
                 .id = "02.4",
                 .source = "steps/4_tensor_cores.cuh",
                 .cause = "tensor cores multiply the tile, which lies as they want it"},
                {.label = "loads in flight",
                 .settings = {{"step", "loads_in_flight"}},
                 .id = "02.5",
                 .source = "steps/5_loads_in_flight.cuh",
                 .cause = "a thread starts all its loads before it stores the first chunk"},
                {.label = "tile order",
                 .settings = {},
                 .id = "02",
                 .cause = "blocks that run together compute neighbouring tiles, for L2"}},
      .builds_on = {"01_naive"},
      .check = check,
      .launch = launcher_of,
      .core = core_of,
      .cpu_check = {131, 136, 264},
      .cpu_check_few = {40, 136, 24}};
  return lesson;
}

}  // namespace lesson02
