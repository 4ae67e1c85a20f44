/// @file
/// Lesson 02 for the programs: its knob, its rungs, and the kernel behind each choice.
#include "02_tiled/gemm.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson02 {
namespace {

template <class Core>
void launch_with(const Gemm& p, cudaStream_t stream) {
  const bool aligned = p.n % TileB::kChunk == 0 && p.k % TileA::kChunk == 0;
  aligned ? launch_gemm<Core, true>(p, stream) : launch_gemm<Core, false>(p, stream);
}

/// Any size will do; the core must be there.
void check(const Gemm&, const ladder::Settings& settings) { ladder::usable_core(settings); }

void launch(const Gemm& p, const ladder::Settings& settings, cudaStream_t stream) {
  const std::string core = ladder::usable_core(settings);
  if (core == "wgmma") launch_with<ladder::WgmmaCore<kTile.n>>(p, stream);
  if (core == "mma_sync") launch_with<ladder::MmaSyncCore<kTile.n>>(p, stream);
  if (core == "fma") launch_with<ladder::FmaCore<kTile.n>>(p, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "02_tiled",
      .idea = "A block keeps a tile of A and of B in shared memory and uses every element 128 times.",
      .knobs = {ladder::core_knob()},
      .rungs = {{"tiled, CUDA cores", {{"core", "fma"}}}, {"tiled, tensor cores", {}}},
      .builds_on = {"01_naive"},
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson02
