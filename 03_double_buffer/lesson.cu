/// @file
/// Lesson 03 for the programs: its knobs, its rungs, and the kernel behind each choice.
#include <stdexcept>

#include "03_double_buffer/gemm.cuh"
#include "03_double_buffer/steps/1_async_copy.cuh"
#include "03_double_buffer/steps/2_past_l1.cuh"
#include "03_double_buffer/variants/ways_to_copy.cuh"
#include "common/device/cores.cuh"
#include "common/host/problem/lessons.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson03 {
namespace {
using ladder::Settings;
using MmaSync = ladder::MmaSyncCore<kTile.n>;
using SmallMmaSync = ladder::MmaSyncCore<kTile.n, 64, 32>;  ///< leaves registers for a tile
using Fma = ladder::FmaCore<kTile.n>;

using Launch = void (*)(const Gemm&, cudaStream_t);

/// The lesson's kernel; with one slot that of its second step.
template <bool kUseL1>
Launch ring(const std::string& slots) {
  if (slots == "1") return past_l1::launch_gemm<kUseL1>;
  if (slots == "2") return launch_gemm<2, kUseL1>;
  if (slots == "3") return launch_gemm<3, kUseL1>;
  if (slots == "4") return launch_gemm<4, kUseL1>;
  return launch_gemm<5, kUseL1>;
}

/// More slots than three bring no other way to copy anything: see check_settings().
template <class Pipe, class Core>
Launch ring_with(const std::string& slots) {
  if (slots == "1") return copies::launch_gemm<1, Pipe, Core>;
  if (slots == "2") return copies::launch_gemm<2, Pipe, Core>;
  return copies::launch_gemm<3, Pipe, Core>;
}

/// The lesson's copies with another core: past L1, but for those of the first step.
template <class Core>
Launch ring_of(const std::string& slots, bool is_first_step) {
  if (is_first_step) return copies::launch_gemm<1, copies::ThroughL1, Core>;
  if (slots == "4") return copies::launch_gemm<4, copies::Primitives, Core>;
  if (slots == "5") return copies::launch_gemm<5, copies::Primitives, Core>;
  return ring_with<copies::Primitives, Core>(slots);
}

/// Other ways to copy.
template <class Core>
Launch with_copy(const Settings& settings) {
  const std::string &copy = settings.at("copy"), &bytes = settings.at("bytes"), &slots = settings.at("slots");
  if (copy == "block") return ring_with<copies::BlockPipeline, Core>(slots);
  if (copy == "cg") return ring_with<copies::CooperativeGroups, Core>(slots);
  if (bytes == "8") return copies::launch_gemm<3, copies::MemcpyAsync<8>, Core>;
  if (bytes == "4") return copies::launch_gemm<3, copies::MemcpyAsync<4>, Core>;
  return ring_with<copies::MemcpyAsync<16>, Core>(slots);
}

/// The next tile stays in registers while this one is multiplied.
template <class Core>
Launch through_registers(const std::string& slots) {
  return ring_with<copies::ThroughRegisters<TileA, TileB, copies::kThreads<Core>>, Core>(slots);
}

/// Whether rows straddle sectors, the pieces of 32 bytes that L2 sends: each second row then begins in the
/// middle of one. Two copies past L1 of the halves of a sector fetch it twice; through L1, once.
bool has_straddling_rows(int n, int k) {
  constexpr int kSectorColumns = 32 / sizeof(__nv_bfloat16);
  return n % kSectorColumns != 0 || k % kSectorColumns != 0;
}

/// Whether the lesson's kernel copies through L1.
bool uses_l1(const Settings& settings, int n, int k) {
  const std::string& l1 = settings.at("l1");
  return l1 == "always" || (l1 == "auto" && has_straddling_rows(n, k));
}

bool is_first_step(const Settings& settings) {
  return settings.at("slots") == "1" && settings.at("l1") == "always";
}

void check_settings(const Settings& settings) {
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
  if (settings.at("l1") != "auto" && copy != "primitives")
    throw std::invalid_argument("--l1 " + settings.at("l1") + ": only --copy primitives has a choice");
  if (settings.at("l1") != "auto" && core != "wgmma" && !is_first_step(settings))
    throw std::invalid_argument("--l1 " + settings.at("l1") +
                                ": only --core wgmma has a choice; others have --l1 always with --slots 1");
}

void check(const Gemm& p, const Settings& settings) {
  ladder::require_chunks(p);
  check_settings(settings);
}

Launch kernel_of(const Settings& settings, bool through_l1) {
  const std::string core = ladder::usable_core(settings), &slots = settings.at("slots");
  if (settings.at("copy") == "registers")
    return core == "wgmma" ? through_registers<Core>(slots) : through_registers<SmallMmaSync>(slots);
  if (settings.at("copy") != "primitives")
    return core == "wgmma" ? with_copy<Core>(settings) : with_copy<MmaSync>(settings);
  const bool is_first = is_first_step(settings);
  if (core == "mma_sync") return ring_of<MmaSync>(slots, is_first);
  if (core == "fma") return ring_of<Fma>(slots, is_first);
  if (is_first) return async_copy::launch_gemm;
  return through_l1 ? ring<true>(slots) : ring<false>(slots);
}

ladder::Launcher launcher_of(const Settings& settings) {
  check_settings(settings);
  return [settings, past = kernel_of(settings, false), through = kernel_of(settings, true)](
             const Gemm& p, cudaStream_t stream) {
    ladder::require_chunks(p);
    (uses_l1(settings, p.n, p.k) ? through : past)(p, stream);
  };
}

std::string remark(const ladder::Shape& shape, const Settings& settings) {
  const bool has_choice = settings.at("copy") == "primitives" && ladder::usable_core(settings) == "wgmma";
  if (!has_choice || settings.at("l1") != "auto" || !uses_l1(settings, shape.n, shape.k)) return "";
  return "03: rows straddle sectors of 32 bytes, so that --l1 auto copies through L1";
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "03_double_buffer",
      .idea = "While the tensor cores work on one tile, the next one is already being copied.",
      .knobs = {ladder::core_knob(),
                {"slots", "tiles of A and B that shared memory holds", {"3", "1", "2", "4", "5"}},
                {"copy",
                 "how a tile gets to shared memory",
                 {"primitives", "memcpy_async", "block", "cg", "registers"}},
                {"bytes", "how much one asynchronous copy moves", {"16", "8", "4"}},
                {"l1",
                 "whether copies go through L1; auto: where rows straddle sectors of 32 bytes",
                 {"auto", "always", "never"}}},
      .rungs = {{.label = "async copies",
                 .settings = {{"slots", "1"}, {"l1", "always"}},
                 .id = "03.1",
                 .source = "steps/1_async_copy.cuh",
                 .cause = "cp.async: a copy skips the registers"},
                {.label = "past L1",
                 .settings = {{"slots", "1"}},
                 .id = "03.2",
                 .source = "steps/2_past_l1.cuh",
                 .cause = "copies go past L1 where rows are whole sectors"},
                {.label = "ring of 3",
                 .settings = {},
                 .id = "03",
                 .cause = "a ring of slots: the next tiles are copied while this one is computed"}},
      .builds_on = {"02_tiled"},
      .check = check,
      .launch = launcher_of,
      .remark = remark,
      // Few tiles: no block computes two, as those of later lessons do.
      .cpu_check = {131, 136, 264},
      .cpu_check_few = {40, 136, 24}};
  return lesson;
}

}  // namespace lesson03
