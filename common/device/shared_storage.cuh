/// @file
/// A block's dynamic shared memory as one struct. A shadow of this header finds the memory on the CPU device.
#pragma once
#include <cuda_runtime.h>

namespace ladder {

/// The dynamic shared memory of this block, seen as a T; launched with `shared_bytes = sizeof(T)`. It starts
/// at a multiple of 1024 bytes, as swizzled tiles need, because kernels here declare no static shared memory:
/// so it was on every GPU, but CUDA promises 16. Debug builds check it.
template <class T>
__device__ __forceinline__ T& shared_storage() {
  static_assert(alignof(T) <= 1024);
  extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
  return *reinterpret_cast<T*>(dynamic_shared_memory);
}

}  // namespace ladder
