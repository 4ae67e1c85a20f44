/// @file
/// The constants of virtual time for work of streams. Measured: on an H200, CUDA 13.0, driver 580.
#pragma once
#include <cmath>
#include <cstdint>

namespace cpu_device {

struct StreamModel {
  /// Measured, pinned memory, with uploads and downloads going at the same time. Bytes in a microsecond.
  double upload = 50.8e3, download = 50.8e3;
  double peer = 397e3;  ///< Measured, from one H200 to another over NVLink
  /// Measured: a copy within the device reads and writes 4269 GB/s together.
  double copy = 4269e3 / 2, memset = 4269e3;
  double multiprocessors = 132;
  /// Published maximum, as in ClockModel. Block cycles are for an SM that runs one block at a time.
  double sm_clock_mhz = 1980;

  double kernel_us(uint64_t blocks, double block_cycles) const {
    return std::ceil(static_cast<double>(blocks) / multiprocessors) * block_cycles / sm_clock_mhz;
  }
};
constexpr StreamModel kStreamModel;

}  // namespace cpu_device
