/// @file
/// What lessons refuse, in the words that all of them use.
#include "common/host/problem/requirements.hpp"

#include <fmt/core.h>
#include <stdexcept>

#include "common/host/device/device.hpp"

namespace ladder {

void require_multiple(const std::string& name, int value, int factor, const std::string& why) {
  if (value % factor != 0)
    throw std::invalid_argument(
        fmt::format("{} = {}: must be a multiple of {}, {}", name, value, factor, why));
}

std::string usable_core(const Settings& settings) {
  const std::string core = resolve_core(settings.at("core"));
  if (core == "wgmma" && !on_cpu_device() && device_info().compute_capability != 90)
    throw std::invalid_argument("--core wgmma: needs a Hopper GPU; " + device_info().name +
                                " has mma_sync and fma");
  return core;
}

void require_tma(const Gemm& p, const Settings& settings) {
  usable_core(settings);
  if (!on_cpu_device() && device_info().compute_capability < 90)
    throw std::invalid_argument(device_info().name + " has no TMA: it came with compute capability 9.0");
  require_multiple("n", p.n, 8, "because TMA wants rows of whole 16 bytes (02_tiled takes any size)");
  require_multiple("k", p.k, 8, "because TMA wants rows of whole 16 bytes (02_tiled takes any size)");
}

void require_tma_and_wgmma(const Gemm& p, const Settings& settings) {
  if (usable_core(settings) != "wgmma")
    throw std::invalid_argument("--core " + settings.at("core") + ": needs a Hopper GPU, not " +
                                device_info().name);
  require_tma(p, settings);
}

}  // namespace ladder
