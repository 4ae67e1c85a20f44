/// @file
/// Shadow of common/cuda/unwritten_reads.hpp: what the emulator has seen.
#pragma once
#include <string>

#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/launch_progress.hpp"

namespace ladder {

inline std::string take_unwritten_read() { return cpu_device::take_unwritten_read(); }

using cpu_device::take_work_of_kernels;

inline std::string describe_host_side() { return cpu_device::describe_host_side(); }

template <class T>
void name_matrix(const T* first, const char* name, int rows, int columns) {
  cpu_device::name_matrix(first, name, rows, columns, sizeof(T));
}

inline std::string take_broken_rule() { return cpu_device::take_broken_rule(); }

}  // namespace ladder
