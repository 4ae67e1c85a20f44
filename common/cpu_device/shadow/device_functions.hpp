/// @file
/// Part of the shadow of <cuda_runtime.h>: barriers, shuffles, votes, fences.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"

inline void __syncthreads(CPU_DEVICE_WHERE) { cpu_device::block_barrier(where); }
inline int __syncthreads_count(int predicate, CPU_DEVICE_WHERE) {
  return static_cast<int>(cpu_device::block_vote(predicate != 0, where));
}
inline int __syncthreads_or(int predicate, CPU_DEVICE_WHERE) {
  return cpu_device::block_vote(predicate != 0, where) != 0;
}
inline int __syncthreads_and(int predicate, CPU_DEVICE_WHERE) {
  return cpu_device::block_vote(predicate == 0, where) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffff, CPU_DEVICE_WHERE) {
  cpu_device::warp_barrier(mask, where);
}

namespace cpu_device {

/// A shuffle of any type of up to 8 bytes.
template <class T>
T shuffle_value(Shuffle kind, unsigned mask, T value, int argument, int width, Location where) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle(kind, mask, bits, argument, width, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace cpu_device

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, CPU_DEVICE_WHERE) {
  return cpu_device::shuffle_value(cpu_device::Shuffle::index, mask, value, lane, width, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CPU_DEVICE_WHERE) {
  return cpu_device::shuffle_value(cpu_device::Shuffle::up, mask, value, static_cast<int>(delta), width,
                                   where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CPU_DEVICE_WHERE) {
  return cpu_device::shuffle_value(cpu_device::Shuffle::down, mask, value, static_cast<int>(delta), width,
                                   where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CPU_DEVICE_WHERE) {
  return cpu_device::shuffle_value(cpu_device::Shuffle::exclusive_or, mask, value, lane_mask, width, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CPU_DEVICE_WHERE) {
  return cpu_device::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate, CPU_DEVICE_WHERE) {
  return cpu_device::ballot(mask, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CPU_DEVICE_WHERE) {
  return cpu_device::ballot(mask, predicate == 0, where) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, CPU_DEVICE_WHERE) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_arithmetic_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return cpu_device::match_any(mask, bits, where);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_equal, CPU_DEVICE_WHERE) {
  const unsigned equal = __match_any_sync(mask, value, where), lanes = __ballot_sync(mask, 1, where);
  *all_equal = __ballot_sync(mask, equal == lanes, where) == lanes;
  return *all_equal ? lanes : 0;
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, CPU_DEVICE_WHERE) {
  return cpu_device::reduce(cpu_device::Reduction::add, mask, value, where);
}
inline int __reduce_add_sync(unsigned mask, int value, CPU_DEVICE_WHERE) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), where));
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, CPU_DEVICE_WHERE) {
  return cpu_device::reduce(cpu_device::Reduction::min, mask, value, where);
}
inline int __reduce_min_sync(unsigned mask, int value, CPU_DEVICE_WHERE) {
  return static_cast<int>(
      cpu_device::reduce(cpu_device::Reduction::min_signed, mask, static_cast<unsigned>(value), where));
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, CPU_DEVICE_WHERE) {
  return cpu_device::reduce(cpu_device::Reduction::max, mask, value, where);
}
inline int __reduce_max_sync(unsigned mask, int value, CPU_DEVICE_WHERE) {
  return static_cast<int>(
      cpu_device::reduce(cpu_device::Reduction::max_signed, mask, static_cast<unsigned>(value), where));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, CPU_DEVICE_WHERE) {
  return cpu_device::reduce(cpu_device::Reduction::bit_and, mask, value, where);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, CPU_DEVICE_WHERE) {
  return cpu_device::reduce(cpu_device::Reduction::bit_or, mask, value, where);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, CPU_DEVICE_WHERE) {
  return cpu_device::reduce(cpu_device::Reduction::bit_xor, mask, value, where);
}
inline unsigned __activemask(CPU_DEVICE_WHERE) { return cpu_device::active_mask(where); }

/// Memory is always coherent here. What a fence orders is noted where Options::check_grid asks for it.
inline void __threadfence(CPU_DEVICE_WHERE) { cpu_device::thread_fence(where); }
inline void __threadfence_system(CPU_DEVICE_WHERE) { cpu_device::thread_fence(where); }
inline void __threadfence_block(CPU_DEVICE_WHERE) { cpu_device::thread_fence_block(where); }
inline void __nanosleep(unsigned, CPU_DEVICE_WHERE) { cpu_device::poll("__nanosleep", where); }

[[noreturn]] inline void __trap(CPU_DEVICE_WHERE) { cpu_device::trap(where); }
inline void __brkpt() {}
inline void __prof_trigger(int) {}

inline unsigned __isShared(const void* pointer) { return cpu_device::is_shared(pointer); }
inline unsigned __isGlobal(const void* pointer) { return cpu_device::is_global(pointer); }
inline unsigned __isLocal(const void* pointer) {
  return !cpu_device::is_shared(pointer) && !cpu_device::is_global(pointer);
}

inline void cudaGridDependencySynchronize(CPU_DEVICE_WHERE) { cpu_device::griddepcontrol_wait(where); }
/// Kernels run one after the other here.
inline void cudaTriggerProgrammaticLaunchCompletion() {}
