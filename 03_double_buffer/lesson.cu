/// @file
/// Lesson 03 for the programs: its knobs, its rungs, and the kernel behind each choice.
#include <stdexcept>

#include "03_double_buffer/gemm.cuh"
#include "03_double_buffer/steps/1_async_copy.cuh"
#include "03_double_buffer/variants/ways_to_copy.cuh"
#include "common/device/cores.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson03 {
namespace {
using ladder::Settings;
using Wgmma = ladder::WgmmaCore<kTile.n>;
using MmaSync = ladder::MmaSyncCore<kTile.n>;
using SmallMmaSync = ladder::MmaSyncCore<kTile.n, 64, 32>;  ///< leaves registers for a tile
using Fma = ladder::FmaCore<kTile.n>;

/// The lesson's kernel; with one slot that of its first step.
template <class Core>
void launch_ring(const Gemm& p, const std::string& slots, cudaStream_t stream) {
  if (slots == "1") one_slot::launch_gemm<Core>(p, stream);
  if (slots == "2") launch_gemm<2, Core>(p, stream);
  if (slots == "3") launch_gemm<3, Core>(p, stream);
  if (slots == "4") launch_gemm<4, Core>(p, stream);
  if (slots == "5") launch_gemm<5, Core>(p, stream);
}

/// More slots than three bring no other way to copy anything: see check().
template <class Pipe, class Core>
void launch_with(const Gemm& p, const std::string& slots, cudaStream_t stream) {
  if (slots == "1") copies::launch_gemm<1, Pipe, Core>(p, stream);
  if (slots == "2") copies::launch_gemm<2, Pipe, Core>(p, stream);
  if (slots == "3") copies::launch_gemm<3, Pipe, Core>(p, stream);
}

/// Other ways to copy.
template <class Core>
void launch_copy(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  const std::string &copy = settings.at("copy"), &bytes = settings.at("bytes"), &slots = settings.at("slots");
  if (copy == "memcpy_async" && bytes == "16") launch_with<copies::MemcpyAsync<16>, Core>(p, slots, stream);
  if (copy == "memcpy_async" && bytes == "8") copies::launch_gemm<3, copies::MemcpyAsync<8>, Core>(p, stream);
  if (copy == "memcpy_async" && bytes == "4") copies::launch_gemm<3, copies::MemcpyAsync<4>, Core>(p, stream);
  if (copy == "block") launch_with<copies::BlockPipeline, Core>(p, slots, stream);
  if (copy == "cg") launch_with<copies::CooperativeGroups, Core>(p, slots, stream);
}

/// The next tile stays in registers while this one is multiplied.
template <class Core>
void launch_through_registers(const Gemm& p, const std::string& slots, cudaStream_t stream) {
  launch_with<copies::ThroughRegisters<TileA, TileB, kThreads<Core>>, Core>(p, slots, stream);
}

void check(const Gemm& p, const Settings& settings) {
  ladder::require_chunks(p);
  const std::string core = ladder::usable_core(settings), &copy = settings.at("copy"),
                    &bytes = settings.at("bytes"), &slots = settings.at("slots");
  if (bytes != "16" && copy != "memcpy_async")
    throw std::invalid_argument("--bytes " + bytes +
                                ": only --copy memcpy_async moves less than 16 bytes at a time");
  if (bytes != "16" && slots != "3")
    throw std::invalid_argument("--slots " + slots + ": copies of " + bytes + " bytes have three slots");
  if (copy != "primitives" && (slots == "4" || slots == "5"))
    throw std::invalid_argument("--slots " + slots + ": only --copy primitives has more than three");
  if (core == "fma" && copy != "primitives")
    throw std::invalid_argument("--core fma: only with --copy primitives");
}

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check(p, settings);
  const std::string core = ladder::usable_core(settings);
  const std::string& slots = settings.at("slots");
  if (settings.at("copy") == "registers") {
    if (core == "wgmma") launch_through_registers<Wgmma>(p, slots, stream);
    if (core == "mma_sync") launch_through_registers<SmallMmaSync>(p, slots, stream);
  } else if (settings.at("copy") != "primitives") {
    if (core == "wgmma") launch_copy<Wgmma>(p, settings, stream);
    if (core == "mma_sync") launch_copy<MmaSync>(p, settings, stream);
  } else {
    if (core == "wgmma") launch_ring<Wgmma>(p, slots, stream);
    if (core == "mma_sync") launch_ring<MmaSync>(p, slots, stream);
    if (core == "fma") launch_ring<Fma>(p, slots, stream);
  }
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
                 {"primitives", "memcpy_async", "block", "cg", "registers"}},
                {"bytes", "how much one asynchronous copy moves", {"16", "8", "4"}}},
      .rungs = {{.label = "async copies",
                 .settings = {{"slots", "1"}},
                 .id = "03.1",
                 .source = "steps/1_async_copy.cuh",
                 .cause = "cp.async: a copy skips the registers"},
                {.label = "ring of 3",
                 .settings = {},
                 .id = "03",
                 .cause = "a ring of slots: the next tiles are copied while this one is computed"}},
      .builds_on = {"02_tiled"},
      .check = check,
      .launch = launch,
      // Few tiles: no block computes two, as those of later lessons do.
      .cpu_check = {131, 136, 264},
      .cpu_check_few = {40, 136, 40}};
  return lesson;
}

}  // namespace lesson03
