/// @file
/// What waits that gave up are called in messages.
#include "common/cuda/bounded_waits.hpp"

#include <sstream>

namespace ladder {
namespace {

std::string duration(uint32_t ms) {
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// Where a barrier lies in the shared memory of its block. Above that, Hopper puts the block's rank in the
/// cluster: in the second block, barrier 0x34408 is at 0x1034408.
uint32_t offset_in_block(uint32_t address) { return address & 0xFFFFFF; }

std::string name_of(const waits::Report& report, uint32_t address) {
  for (const waits::BarrierName& name : report.names)
    if (name.address == offset_in_block(address) && name.text[0])
      return std::string(name.text) + "[" + std::to_string(name.slot) + "]";
  std::ostringstream text;
  text << "the mbarrier at 0x" << std::hex << address << " of shared memory";
  return text.str();
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
    const std::string warps = first == last ? "warp " + std::to_string(first)
                                            : "warps " + std::to_string(first) + "-" + std::to_string(last);
    text += (text.empty() ? "" : "\n") + std::string("block ") + std::to_string(report.block) + ", " + warps +
            " waited " + duration(report.limit_ms) + " for " + name_of(report, wait.address) +
            ", phase of parity " + std::to_string(wait.parity) + ": still pending";
  }
  return text;
}

}  // namespace ladder
