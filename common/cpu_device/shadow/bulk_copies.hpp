/// @file
/// Part of the shadow of <cuda/barrier>: cuda::device::experimental, copies by TMA. The barrier counts their
/// bytes; one thread calls.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"

namespace cuda::device::experimental {

template <class Barrier>
void cp_async_bulk_global_to_shared(void* to, const void* from, uint32_t bytes, Barrier& barrier,
                                    CPU_DEVICE_WHERE) {
  cpu_device::bulk_load(to, from, bytes, {barrier.handle()}, where);
}
inline void cp_async_bulk_shared_to_global(void* to, const void* from, uint32_t bytes, CPU_DEVICE_WHERE) {
  cpu_device::bulk_store(to, from, bytes, cpu_device::BulkReduction::none, cpu_device::ElementType::u32,
                         where);
}

#define CPU_DEVICE_UNPACK(...) __VA_ARGS__
#define CPU_DEVICE_TENSOR_COPIES(dimensions, declared, passed)                                            \
  template <class Barrier>                                                                                \
  void cp_async_bulk_tensor_##dimensions##d_global_to_shared(                                             \
      void* to, const CUtensorMap* map, CPU_DEVICE_UNPACK declared, Barrier& barrier, CPU_DEVICE_WHERE) { \
    const int coordinates[] = {CPU_DEVICE_UNPACK passed};                                                 \
    cpu_device::tma_load(to, map, coordinates, dimensions, {barrier.handle()}, where);                    \
  }                                                                                                       \
  inline void cp_async_bulk_tensor_##dimensions##d_shared_to_global(                                      \
      const CUtensorMap* map, CPU_DEVICE_UNPACK declared, const void* from, CPU_DEVICE_WHERE) {           \
    const int coordinates[] = {CPU_DEVICE_UNPACK passed};                                                 \
    cpu_device::tma_store(map, from, coordinates, dimensions, cpu_device::BulkReduction::none, where);    \
  }
CPU_DEVICE_TENSOR_COPIES(1, (int c0), (c0))
CPU_DEVICE_TENSOR_COPIES(2, (int c0, int c1), (c0, c1))
CPU_DEVICE_TENSOR_COPIES(3, (int c0, int c1, int c2), (c0, c1, c2))
CPU_DEVICE_TENSOR_COPIES(4, (int c0, int c1, int c2, int c3), (c0, c1, c2, c3))
CPU_DEVICE_TENSOR_COPIES(5, (int c0, int c1, int c2, int c3, int c4), (c0, c1, c2, c3, c4))
#undef CPU_DEVICE_TENSOR_COPIES
#undef CPU_DEVICE_UNPACK

inline void fence_proxy_async_shared_cta(CPU_DEVICE_WHERE) { cpu_device::fence_proxy_async(where); }
inline void cp_async_bulk_commit_group(CPU_DEVICE_WHERE) { cpu_device::tma_store_commit(where); }
template <int kInFlight>
void cp_async_bulk_wait_group_read(CPU_DEVICE_WHERE) {
  cpu_device::tma_store_wait(kInFlight, /*only_read=*/true, where);
}

}  // namespace cuda::device::experimental
