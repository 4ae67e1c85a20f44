/// @file
/// Shadow of common/ptx/cluster.cuh. (Addresses in the shared window of the cluster exist only in assembler.)
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared_address.cuh"

namespace ptx {

inline uint32_t cluster_block_rank() { return cpu_device::current_thread_ids->block->rank_in_cluster; }
inline void cluster_sync(CPU_DEVICE_WHERE) { cpu_device::cluster_barrier(where); }
template <class T>
T* map_shared(T* pointer, uint32_t rank, CPU_DEVICE_WHERE) {
  return static_cast<T*>(cpu_device::map_shared(pointer, rank, where));
}
inline void mbarrier_arrive_remote(Mbarrier* barrier, uint32_t rank, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_arrive_remote(barrier, rank, cpu_device::ArrivalOrder::relaxed,
                                     "mbarrier_arrive_remote", where);
}
inline void mbarrier_arrive_remote_release(Mbarrier* barrier, uint32_t rank, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_arrive_remote(barrier, rank, cpu_device::ArrivalOrder::release,
                                     "mbarrier_arrive_remote_release", where);
}
inline void mbarrier_wait_cluster(Mbarrier* barrier, uint32_t parity, CPU_DEVICE_WHERE) {
  cpu_device::mbarrier_wait_cluster(barrier, parity, "mbarrier_wait_cluster", where);
}
inline void store_async(float4* to, uint32_t rank, float4 value, Mbarrier* full, CPU_DEVICE_WHERE) {
  cpu_device::store_async(to, rank, &value, full, where);
}

}  // namespace ptx
