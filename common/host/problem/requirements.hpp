/// @file
/// What lessons refuse, in the words that all of them use.
#pragma once
#include <stdexcept>
#include <string>

#include "common/host/device/device.hpp"
#include "common/host/problem/lesson.hpp"

namespace ladder {

/// @throws std::invalid_argument unless `value` is a multiple of `factor`; `why` ends the sentence.
inline void require_multiple(const std::string& name, int value, int factor, const std::string& why) {
  if (value % factor != 0)
    throw std::invalid_argument(name + " = " + std::to_string(value) + ": must be a multiple of " +
                                std::to_string(factor) + ", " + why);
}

/// The core that the setting `core` stands for on this device: wgmma, mma_sync or fma.
/// @throws std::invalid_argument for a core that the GPU does not have.
inline std::string usable_core(const Settings& settings) {
  const std::string core = resolve_core(settings.at("core"));
  if (core == "wgmma" && !on_cpu_device() && device_info().compute_capability != 90)
    throw std::invalid_argument("--core wgmma: needs a Hopper GPU; " + device_info().name +
                                " has mma_sync and fma");
  return core;
}

/// What lessons 04 to 06 need: rows that TMA can copy, and wgmma.
/// @throws std::invalid_argument
inline void require_tma(const Gemm& p, const Settings& settings) {
  if (usable_core(settings) != "wgmma")
    throw std::invalid_argument("--core " + settings.at("core") + ": needs a Hopper GPU, not " +
                                device_info().name);
  require_multiple("n", p.n, 8, "because TMA wants rows of whole 16 bytes (02_tiled takes any size)");
  require_multiple("k", p.k, 8, "because TMA wants rows of whole 16 bytes (02_tiled takes any size)");
}

/// The only core of lessons 04 to 06, so that results name it.
inline Knob wgmma_knob() { return {"core", "what multiplies a tile", {"auto", "wgmma"}}; }

/// The knob of persistent lessons.
inline Knob group_knob() { return {"group", "tile rows that are walked together", {"16", "1", "4", "8"}}; }

/// The knob of lessons 02 and 03.
inline Knob core_knob() {
  return {"core",
          "what multiplies a tile; auto is the best that the device has",
          {"auto", "wgmma", "mma_sync", "fma"}};
}

}  // namespace ladder
