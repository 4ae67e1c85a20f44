/// @file
/// A vector of the host that kernels may read and write.
#pragma once
#include <cstddef>
#include <vector>

#include "common/cuda/error.hpp"

namespace cpu_device::test {

template <class T>
struct PinnedAllocator {
  using value_type = T;
  PinnedAllocator() = default;
  template <class U>
  PinnedAllocator(const PinnedAllocator<U>&) {}
  T* allocate(size_t count) {
    T* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(T)));
    return memory;
  }
  void deallocate(T* memory, size_t) { cudaFreeHost(memory); }
  bool operator==(const PinnedAllocator&) const { return true; }
};

template <class T>
using PinnedVector = std::vector<T, PinnedAllocator<T>>;

}  // namespace cpu_device::test
