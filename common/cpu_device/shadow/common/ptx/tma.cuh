/// @file
/// Shadow of common/ptx/tma.cuh.
#pragma once
#include <cuda.h>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/mbarrier.cuh"

namespace ptx {

inline void tma_prefetch(const CUtensorMap* map, CPU_DEVICE_WHERE) { cpu_device::tma_prefetch(map, where); }
inline void tma_load(void* to, const CUtensorMap* map, int column, int row, Mbarrier* full,
                     CPU_DEVICE_WHERE) {
  cpu_device::tma_load(to, map, column, row, full, where);
}
inline void tma_load_multicast(void* to, const CUtensorMap* map, int column, int row, Mbarrier* full,
                               uint16_t blocks, CPU_DEVICE_WHERE) {
  cpu_device::tma_load_multicast(to, map, column, row, full, blocks, where);
}
inline void tma_store(const CUtensorMap* map, const void* from, int column, int row, CPU_DEVICE_WHERE) {
  cpu_device::tma_store(map, from, column, row, where);
}
inline void tma_store_commit(CPU_DEVICE_WHERE) { cpu_device::tma_store_commit(where); }
template <int kInFlight>
void tma_store_wait_read(CPU_DEVICE_WHERE) {
  cpu_device::tma_store_wait(kInFlight, /*only_read=*/true, where);
}
template <int kInFlight>
void tma_store_wait(CPU_DEVICE_WHERE) {
  cpu_device::tma_store_wait(kInFlight, /*only_read=*/false, where);
}

}  // namespace ptx
