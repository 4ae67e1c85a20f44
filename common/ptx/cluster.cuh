/// @file
/// Blocks of a cluster (sm_90): their ranks, how they meet, how one reaches the memory of another. GPUs
/// before sm_90 have no clusters: what needs one is a trap there.
///
/// A pointer into a block's own shared memory names a place; together with the rank of a block it names the
/// same place in that block (PTX ISA, "mapa"). A block must not leave while another can still reach it.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared_address.cuh"

namespace ptx {

/// `mov.u32 %cluster_ctarank`: which block of its cluster this is. Earlier GPUs say 0.
__device__ __forceinline__ uint32_t cluster_block_rank() {
  uint32_t rank = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

/// `barrier.cluster.arrive.release` and `barrier.cluster.wait.acquire`: all threads of all blocks of the
/// cluster; threads that have left do not count.
__device__ __forceinline__ void cluster_sync() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
#else
  __trap();
#endif
}

/// `mapa.shared::cluster.u32`: the address, in the cluster's shared window, of `pointer` in block `rank`.
__device__ __forceinline__ uint32_t cluster_address(const void* pointer, uint32_t rank) {
  uint32_t address = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // [mapa]
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(pointer)), "r"(rank));
  // [mapa]
#else
  __trap();
#endif
  return address;
}

/// `mapa.u64`, to a generic pointer, for ordinary loads and stores: the place of `pointer` in block `rank`.
template <class T>
__device__ __forceinline__ T* map_shared(T* pointer, uint32_t rank) {
  uint64_t address = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(pointer), "r"(rank));
#else
  __trap();
#endif
  return reinterpret_cast<T*>(address);
}

/// `mbarrier.arrive.relaxed.cluster.shared::cluster.b64`: one arrival at the barrier of block `rank`.
/// Relaxed: it orders nothing. It is for a consumer whose reads are complete, as wgmma's are after
/// wgmma_wait_group. After ordinary loads use mbarrier_arrive_remote_release, slower in 06_any_shape.
__device__ __forceinline__ void mbarrier_arrive_remote(Mbarrier* barrier, uint32_t rank) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // [arrive_remote]
  asm volatile(
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
      : "memory");
  // [arrive_remote]
#else
  __trap();
#endif
}

/// `mbarrier.arrive.release.cluster.shared::cluster.b64`: one arrival at the barrier of block `rank`, after
/// all that this thread has read and written before.
__device__ __forceinline__ void mbarrier_arrive_remote_release(Mbarrier* barrier, uint32_t rank) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
      : "memory");
#else
  __trap();
#endif
}

/// `mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64`: whether the phase of that parity has
/// completed; may wait for it a while. Sees what threads of other blocks did before they arrived.
__device__ __forceinline__ bool mbarrier_try_wait_cluster(Mbarrier* barrier, uint32_t parity) {
  uint32_t done = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
#else
  __trap();
#endif
  return done;
}

/// Waits until the phase of that parity has completed, and sees what threads of other blocks did before.
__device__ __forceinline__ void mbarrier_wait_cluster(Mbarrier* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_cluster(barrier, parity)) continue;
}

/// `st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32`: writes 16 bytes to the place of `to` in
/// block `rank`, without waiting, and counts them at its barrier. After mbarrier_wait_cluster they are seen.
__device__ __forceinline__ void store_async(float4* to, uint32_t rank, float4 value, Mbarrier* full) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // [store_async]
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          cluster_address(to, rank)),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(cluster_address(full, rank))
      : "memory");
  // [store_async]
#else
  __trap();
#endif
}

}  // namespace ptx
