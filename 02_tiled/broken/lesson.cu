/// @file
/// Lesson 02 for the lab: its kernel with two cores, so that a broken copy is compiled quickly.
#include "02_tiled/gemm.cuh"
#include "02_tiled/variants/other_cores.cuh"
#include "common/device/cores.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson02 {
namespace {

void check(const Gemm& p, const ladder::Settings& settings) {
  ladder::usable_core(settings);
  ladder::require_chunks(p);
}

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  const std::string core = ladder::usable_core(settings);
  if (core == "wgmma") launch_gemm(p, stream);
  if (core == "mma_sync") other_cores::launch_gemm<ladder::MmaSyncCore<kTile.n>>(p, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "02_tiled",
      .idea = "Lesson 02, for the lab.",
      .knobs = {{"core", "what multiplies a tile", {"auto", "wgmma", "mma_sync"}}},
      .rungs = {{"lab", {}}},
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson02
