/// @file
/// The device that this build runs on.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/host/device/compiled_code.hpp"

namespace ladder {

/// What results say about where they were measured, and what kernels may ask for. On the CPU device, sizes
/// and clocks are 0, except for the shared memory of a block, which is that of Hopper.
struct DeviceInfo {
  std::string name;            ///< "NVIDIA H200"; "CPU device"
  std::string driver;          ///< "580.159.03"; "none"
  std::string toolkit;         ///< "CUDA 13.0"; the C++ compiler
  int compute_capability = 0;  ///< major * 10 + minor
  Code code;                   ///< of this build, that the device runs; the CPU device runs that for sm_90a
  int multiprocessors = 0;
  double max_clock_mhz =
      0;  ///< of the multiprocessors; what they get under load is less (measure/sm_clock.hpp)
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  size_t block_shared_bytes = 0;  ///< that a block can ask for
};

/// True if this build runs kernels on the emulator in common/cpu_device.
bool on_cpu_device();

/// What the CPU device answers to an option of measurements.
inline constexpr const char* kOnlyTimedOnGpu = "only on a GPU: the CPU device measures no time";

/// @throws BadInput, which says what to do, if this is a GPU build and there is no GPU, or none of the
/// build's code runs on it.
void require_device();

/// Asks the device once; what it says does not change.
/// @throws what require_device throws.
const DeviceInfo& device_info();

/// The power that the board draws, as its driver says, averaged over the last moments; nothing where it does
/// not say.
std::optional<double> read_power_watts();

/// What the board has consumed since its driver was loaded, by a counter that advances every 100 ms or so;
/// nothing where the GPU has none.
std::optional<double> read_energy_joules();

/// The GPU and this build, for compiled_code.hpp.
/// @throws what require_device throws.
const Target& this_target();

/// The GPUs that CUDA shows, by name and compute capability; none on the CPU device, whose devices are all
/// equal.
std::vector<Target> all_gpus();

/// The core behind the choice "auto": the best that was compiled and that the device has. Other choices are
/// returned as they are.
std::string resolve_core(const std::string& choice);

}  // namespace ladder
