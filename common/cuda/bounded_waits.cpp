/// @file
/// What waits that gave up are called in messages.
#include "common/cuda/bounded_waits.hpp"

#include <fmt/core.h>

#include "common/cuda/barrier_names.hpp"

namespace ladder {
namespace {

std::string duration(uint32_t ms) {
  return ms % 1000 == 0 ? fmt::format("{} s", ms / 1000) : fmt::format("{} ms", ms);
}

/// Where a barrier lies in the shared memory of its block. Above that, Hopper puts the block's rank in the
/// cluster: in the second block, barrier 0x34408 is at 0x1034408.
uint32_t offset_in_block(uint32_t address) { return address & 0xFFFFFF; }

std::string name_of(const waits::Report& report, uint32_t address) {
  const std::string name = name_in_notes(report.notes, report.kNotes, offset_in_block(address));
  return name.empty() ? fmt::format("the mbarrier at {:#x} of shared memory", address) : name;
}

bool same(const waits::StuckWait& one, const waits::StuckWait& other) {
  return one.happened == other.happened && one.address == other.address && one.parity == other.parity;
}

}  // namespace

std::string describe_stuck_waits(const waits::Report& report) {
  std::string text;
  for (uint32_t first = 0, last = 0; first < report.kWarps; first = last + 1) {
    const waits::StuckWait& wait = report.warps[first];
    for (last = first; last + 1 < report.kWarps && same(wait, report.warps[last + 1]);) ++last;
    if (!wait.happened) continue;
    const std::string warps =
        first == last ? fmt::format("warp {}", first) : fmt::format("warps {}-{}", first, last);
    text += fmt::format("{}block {}, {} waited {} for {}, phase of parity {}: still pending",
                        text.empty() ? "" : "\n", report.block, warps, duration(report.limit_ms),
                        name_of(report, wait.address), wait.parity);
  }
  return text;
}

}  // namespace ladder
