/// @file
/// Shadow of common/device/shared_storage.cuh: a kernel stops where its memory does not begin as T asks,
/// which CUDA does not promise beyond 16 bytes.
#pragma once
#define shared_storage plain_shared_storage
#include_next "common/device/shared_storage.cuh"
#undef shared_storage

#include "common/ptx/shared_address.cuh"

namespace ladder {

template <class T>
__device__ __forceinline__ T& shared_storage() {
  T& storage = plain_shared_storage<T>();
  if (ptx::shared_address(&storage) % alignof(T) != 0) __trap();
  return storage;
}

}  // namespace ladder
