/// @file
/// What lessons refuse, in the words that all of them use.
#pragma once
#include <string>

#include "common/host/problem/lesson.hpp"

namespace ladder {

/// @throws std::invalid_argument unless `value` is a multiple of `factor`; `why` ends the sentence.
void require_multiple(const std::string& name, int value, int factor, const std::string& why);

/// The core that the setting `core` stands for on this device: wgmma, mma_sync or fma.
/// @throws std::invalid_argument for a core that was not compiled, or that the GPU does not have.
std::string usable_core(const Settings& settings);

/// What lessons 04 to 06 need: rows that TMA can copy, and wgmma.
/// @throws std::invalid_argument
void require_tma(const Gemm& p, const Settings& settings);

/// The only core of lessons 04 to 06, so that results name it.
inline Knob wgmma_knob() { return {"core", "what multiplies a tile", {"auto", "wgmma"}}; }

/// The knob of persistent lessons.
inline Knob group_knob() { return {"group", "tile rows that blocks visit together", {"16", "1", "4", "8"}}; }

/// The knob of lessons 02 and 03.
inline Knob core_knob() {
  return {"core",
          "what multiplies a tile; auto is the best that the device has",
          {"auto", "wgmma", "mma_sync", "fma"}};
}

}  // namespace ladder
