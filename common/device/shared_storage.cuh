/// @file
/// A block's dynamic shared memory as one struct. A shadow of this header finds the memory on the CPU device.
#pragma once
#include <cuda_runtime.h>

namespace ladder {

/// The block's dynamic shared memory as a T: launch with `shared_bytes = sizeof(T)`. Without static shared
/// memory it starts at a multiple of 1024 bytes on every GPU seen; CUDA promises 16. Debug builds check it.
template <class T>
__device__ __forceinline__ T& shared_storage() {
  static_assert(alignof(T) <= 1024);
  extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
  return *reinterpret_cast<T*>(dynamic_shared_memory);
}

}  // namespace ladder
