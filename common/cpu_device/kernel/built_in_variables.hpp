/// @file
/// threadIdx and so on, as the engine sees them: it sets them where it resumes a thread. Kernels see
/// constants (shadow/builtin_variables.hpp), so no source may include both headers.
#pragma once
#include "common/cpu_device/kernel/engine.hpp"

extern constinit thread_local cpu_device::Uint3 threadIdx, blockIdx;
extern constinit thread_local cpu_device::Dim3 blockDim, gridDim;

namespace cpu_device {

inline void set_built_in_variables(const ThreadIds& ids) {
  threadIdx = ids.index;
  blockIdx = ids.block->index;
  blockDim = ids.block->block_dim;
  gridDim = ids.block->grid_dim;
}

}  // namespace cpu_device
