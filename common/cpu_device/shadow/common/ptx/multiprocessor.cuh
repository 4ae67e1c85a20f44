/// @file
/// Shadow of common/ptx/multiprocessor.cuh. Every block has a multiprocessor of its own here.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ptx {

inline uint32_t multiprocessor() { return blockIdx.x; }

}  // namespace ptx
