/// @file
/// The GPU that CUDA calls device 0.
#include <cuda_runtime.h>
#include <fmt/core.h>

#include "common/cuda/error.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/device/compiled_code.hpp"
#include "common/host/device/device.hpp"
#include "common/host/device/nvml.hpp"

namespace ladder {
namespace {

constexpr int kDevice = 0;

const std::string& pci_address() {
  static const std::string address = [] {
    char text[32] = "";
    CUDA_CHECK(cudaDeviceGetPCIBusId(text, sizeof text, kDevice));
    return std::string(text);
  }();
  return address;
}

/// "13.0" from CUDA's 13000.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string driver_version() {
  if (const auto version = nvml::driver_version()) return *version;
  int cuda_version = 0;
  CUDA_CHECK(cudaDriverGetVersion(&cuda_version));
  return "CUDA " + version_text(cuda_version);
}

DeviceInfo ask_device() {
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, kDevice));
  int runtime_version = 0;
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime_version));
  DeviceInfo info;
  info.name = properties.name;
  info.driver = driver_version();
  info.toolkit = "CUDA " + version_text(runtime_version);
  info.compute_capability = properties.major * 10 + properties.minor;
  info.code = loaded_code();
  info.multiprocessors = properties.multiProcessorCount;
  int clock_khz = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, kDevice));
  info.max_clock_mhz = clock_khz / 1000.0;
  info.memory_bytes = properties.totalGlobalMem;
  info.l2_bytes = static_cast<size_t>(properties.l2CacheSize);
  info.block_shared_bytes = properties.sharedMemPerBlockOptin;
  return info;
}

void require_gpu() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0)
    throw BadInput("this build needs an NVIDIA GPU and CUDA found none (" +
                   std::string(result == cudaSuccess ? "no device" : cudaGetErrorString(result)) +
                   "); without a GPU, configure with -DLADDER_DEVICE=cpu");
}

Target target_of(const DeviceInfo& info) {
  return {info.name, info.compute_capability, LADDER_CUDA_ARCHITECTURES, info.code};
}

}  // namespace

bool on_cpu_device() { return false; }

void require_device() { device_info(); }

const DeviceInfo& device_info() {
  static const DeviceInfo facts = [] {
    require_gpu();
    const DeviceInfo info = ask_device();
    const std::string reason = why_no_code(target_of(info));
    if (!reason.empty()) throw BadInput(reason);
    return info;
  }();
  return facts;
}

std::optional<double> read_power_watts() { return nvml::power_watts(pci_address()); }
std::optional<double> read_energy_joules() { return nvml::energy_joules(pci_address()); }

const Target& this_target() {
  static const Target target = target_of(device_info());
  return target;
}

std::vector<Target> all_gpus() {
  int count = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  std::vector<Target> result;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    result.push_back(
        {properties.name, properties.major * 10 + properties.minor, LADDER_CUDA_ARCHITECTURES, {}});
  }
  return result;
}

std::string resolve_core(const std::string& choice) {
  return choice == "auto" ? best_core(device_info().code) : choice;
}

}  // namespace ladder
