/// @file
/// Shadow of common/ptx/tma_3d.cuh.
#pragma once
#include <cuda.h>

#include "common/cpu_device/kernel/instructions.hpp"
#include "common/ptx/mbarrier.cuh"

namespace ptx {

inline void tma_load_3d(void* to, const CUtensorMap* map, int column, int row, int matrix, Mbarrier* full,
                        CPU_DEVICE_WHERE) {
  const int coordinates[] = {column, row, matrix};
  cpu_device::tma_load(to, map, coordinates, 3, {full, 0}, where);
}

inline void tma_store_3d(const CUtensorMap* map, const void* from, int column, int row, int matrix,
                         CPU_DEVICE_WHERE) {
  const int coordinates[] = {column, row, matrix};
  cpu_device::tma_store(map, from, coordinates, 3, cpu_device::BulkReduction::none, where);
}

}  // namespace ptx
