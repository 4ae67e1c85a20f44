/// @file
/// Lesson 03 for the programs: its knobs, its rungs, and the kernel behind each choice.
#include <stdexcept>

#include "03_double_buffer/gemm.cuh"
#include "common/host/problem/requirements.hpp"

namespace lesson03 {
namespace {
using ladder::Settings;
using Wgmma = ladder::WgmmaCore<kTile.n>;
using MmaSync = ladder::MmaSyncCore<kTile.n>;
using Fma = ladder::FmaCore<kTile.n>;

template <class Pipe, class Core>
void launch_with(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  const std::string& slots = settings.at("slots");
  if (slots == "1") launch_gemm<1, Pipe, Core>(p, stream);
  if (slots == "2") launch_gemm<2, Pipe, Core>(p, stream);
  if (slots == "3") launch_gemm<3, Pipe, Core>(p, stream);
  if (slots == "4") launch_gemm<4, Pipe, Core>(p, stream);
  if (slots == "5") launch_gemm<5, Pipe, Core>(p, stream);
}

template <class Core>
void launch_copy(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  const std::string &copy = settings.at("copy"), &bytes = settings.at("bytes");
  if (copy == "memcpy_async" && bytes == "8") launch_with<MemcpyAsync<8>, Core>(p, settings, stream);
  if (copy == "memcpy_async" && bytes == "4") launch_with<MemcpyAsync<4>, Core>(p, settings, stream);
  if (copy == "block") launch_with<BlockPipeline, Core>(p, settings, stream);
  if (copy == "primitives") launch_with<Primitives, Core>(p, settings, stream);
  if (copy == "cg") launch_with<CooperativeGroups, Core>(p, settings, stream);
  if (copy == "registers") launch_with<ThroughRegisters<TileA, TileB, kThreads>, Core>(p, settings, stream);
}

void check(const Gemm& p, const Settings& settings) {
  ladder::require_multiple("n", p.n, TileB::kChunk,
                           "because copies move 16 bytes at a time (02_tiled takes any size)");
  ladder::require_multiple("k", p.k, TileA::kChunk,
                           "because copies move 16 bytes at a time (02_tiled takes any size)");
  const std::string core = ladder::usable_core(settings), &copy = settings.at("copy"),
                    &bytes = settings.at("bytes");
  if (bytes != "16" && copy != "memcpy_async")
    throw std::invalid_argument("--bytes " + bytes +
                                ": only --copy memcpy_async moves less than 16 bytes at a time");
  if (core == "fma" && (copy != "memcpy_async" || bytes != "16"))
    throw std::invalid_argument("--core fma: only with --copy memcpy_async --bytes 16");
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const std::string core = ladder::usable_core(settings);
  const bool plain = settings.at("copy") == "memcpy_async" && settings.at("bytes") == "16";
  if (plain && core == "wgmma") launch_with<MemcpyAsync<16>, Wgmma>(p, settings, stream);
  if (plain && core == "mma_sync") launch_with<MemcpyAsync<16>, MmaSync>(p, settings, stream);
  if (plain && core == "fma") launch_with<MemcpyAsync<16>, Fma>(p, settings, stream);
  if (!plain && core == "wgmma") launch_copy<Wgmma>(p, settings, stream);
  if (!plain && core == "mma_sync") launch_copy<MmaSync>(p, settings, stream);
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "03_double_buffer",
      .idea = "While the tensor cores work on one tile, the next one is already on its way.",
      .knobs = {ladder::core_knob(),
                {"slots", "tiles of A and B that shared memory holds", {"3", "1", "2", "4", "5"}},
                {"copy",
                 "how a tile gets to shared memory",
                 {"memcpy_async", "block", "primitives", "cg", "registers"}},
                {"bytes", "how much one asynchronous copy moves", {"16", "8", "4"}}},
      .rungs = {{"double buffer", {{"slots", "2"}}}, {"three slots", {{"slots", "3"}}}},
      .builds_on = {"02_tiled"},
      .check = check,
      .launch = launch};
  return lesson;
}

}  // namespace lesson03
