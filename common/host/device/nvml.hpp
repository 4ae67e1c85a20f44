/// @file
/// The few functions of NVIDIA's management library that we need, loaded at run time: a program that links
/// against the driver does not start where there is none. Only in the GPU build.
#pragma once
#include <optional>
#include <string>

namespace ladder::nvml {

/// Power draw of the GPU at this PCI address, for example "0000:1b:00.0"; empty if NVML or the value is
/// missing.
std::optional<double> power_watts(const std::string& pci_address);
/// Since the driver was loaded. The counter advances every 100 ms or so.
std::optional<double> energy_joules(const std::string& pci_address);
std::optional<std::string> driver_version();

}  // namespace ladder::nvml
