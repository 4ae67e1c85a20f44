/// @file
/// What lessons refuse, in the words that all of them use.
#pragma once
#include <stdexcept>
#include <string>

#include "common/host/device.hpp"
#include "common/host/lesson.hpp"

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

/// The knob of lessons 02 to 06.
inline Knob core_knob() {
  return {"core",
          "what multiplies a tile; auto is the best that the device has",
          {"auto", "wgmma", "mma_sync", "fma"}};
}

}  // namespace ladder
