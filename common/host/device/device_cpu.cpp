/// @file
/// The CPU device: always there, runs every core, measures nothing.
#include "common/host/device/device.hpp"

namespace ladder {

bool on_cpu_device() { return true; }
void require_device() {}
std::optional<double> read_power_watts() { return std::nullopt; }
std::string resolve_core(const std::string& choice) { return choice == "auto" ? "wgmma" : choice; }

DeviceInfo device_info() {
  DeviceInfo info;
  info.name = "CPU device";
  info.driver = "none";
#if defined(__clang__)
  info.toolkit = "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#else
  info.toolkit = "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#endif
  return info;
}

}  // namespace ladder
