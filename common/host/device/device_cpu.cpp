/// @file
/// The CPU device: always there, runs every core, measures nothing.
#include "common/host/device/device.hpp"

#include <fmt/core.h>

namespace ladder {

bool on_cpu_device() { return true; }
void require_device() {}
std::optional<double> read_power_watts() { return std::nullopt; }
std::optional<double> read_energy_joules() { return std::nullopt; }
std::vector<Target> all_gpus() { return {}; }
const Target& this_target() {
  static const Target target = {device_info().name, 0, "", device_info().code};
  return target;
}
std::string resolve_core(const std::string& choice) {
  return choice == "auto" ? best_core(device_info().code) : choice;
}

const DeviceInfo& device_info() {
  static const DeviceInfo facts = [] {
    DeviceInfo info;
    info.name = "CPU device";
    info.driver = "none";
    info.code = {kHopper, true};
    info.block_shared_bytes = 227 * 1024;
#if defined(__clang__)
    info.toolkit = fmt::format("clang {}.{}", __clang_major__, __clang_minor__);
#else
    info.toolkit = fmt::format("g++ {}.{}", __GNUC__, __GNUC_MINOR__);
#endif
    return info;
  }();
  return facts;
}

}  // namespace ladder
