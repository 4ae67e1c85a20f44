/// @file
/// The few functions of NVIDIA's management library that we need, loaded at run time.
#include "common/host/device/nvml.hpp"

#include <dlfcn.h>

namespace ladder::nvml {
namespace {

// From nvml.h, whose interface is stable: NVML_SUCCESS is 0.
using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0;

/// The library, initialised. All functions are null if it cannot be loaded or started.
struct Library {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_by_pci_address)(const char*, Device*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;

  Library() {
    void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    load(handle, "nvmlInit_v2", init);
    if (!init || init() != kSuccess) return;
    load(handle, "nvmlSystemGetDriverVersion", driver_version);
    load(handle, "nvmlDeviceGetHandleByPciBusId_v2", device_by_pci_address);
    load(handle, "nvmlDeviceGetPowerUsage", power);
    load(handle, "nvmlDeviceGetTotalEnergyConsumption", energy);
  }

  template <class Function>
  static void load(void* handle, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(handle, name));
  }

  Device device(const std::string& pci_address) const {
    Device result = nullptr;
    if (!device_by_pci_address || device_by_pci_address(pci_address.c_str(), &result) != kSuccess)
      return nullptr;
    return result;
  }
};

const Library& library() {
  static const Library instance;
  return instance;
}

}  // namespace

std::optional<double> power_watts(const std::string& pci_address) {
  const Device device = library().device(pci_address);
  unsigned milliwatts = 0;
  if (!device || !library().power || library().power(device, &milliwatts) != kSuccess) return std::nullopt;
  return milliwatts / 1000.0;
}

std::optional<double> energy_joules(const std::string& pci_address) {
  const Device device = library().device(pci_address);
  unsigned long long millijoules = 0;
  if (!device || !library().energy || library().energy(device, &millijoules) != kSuccess) return std::nullopt;
  return static_cast<double>(millijoules) / 1000;
}

std::optional<std::string> driver_version() {
  char text[96] = "";
  if (!library().driver_version || library().driver_version(text, sizeof text) != kSuccess)
    return std::nullopt;
  return text;
}

}  // namespace ladder::nvml
