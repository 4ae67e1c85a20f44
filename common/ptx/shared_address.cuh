/// @file
/// Addresses in the shared-memory window. Replaced by a shadow header on the CPU device, like all of
/// common/ptx.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ptx {

/// The 32-bit address of `pointer` in the shared window of its block, as PTX instructions take it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace ptx
