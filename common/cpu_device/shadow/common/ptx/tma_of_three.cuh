/// @file
/// Shadow of common/ptx/tma_of_three.cuh.
#pragma once
#include <cuda.h>

#include "common/cpu_device/kernel/engine.hpp"

namespace ptx {

inline void tma_store(const CUtensorMap* map, const void* from, int column, int row, int outer,
                      CPU_DEVICE_WHERE) {
  const int coordinates[] = {column, row, outer};
  cpu_device::tma_store(map, from, coordinates, 3, cpu_device::BulkReduction::none, where);
}

}  // namespace ptx
