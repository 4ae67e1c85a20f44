/// @file
/// Part of the shadow of <cuda_runtime.h>: the intrinsics that kernels call.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"

inline void __syncthreads(CPU_DEVICE_WHERE) { cpu_device::block_barrier(where); }
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
  return cpu_device::match_any(mask, static_cast<uint64_t>(value), where);
}
inline unsigned __activemask() { return cpu_device::active_mask(); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(static_cast<unsigned>(bits)) : 32; }

/// Memory is always coherent here. What a fence orders is noted where Options::check_grid asks for it.
inline void __threadfence(CPU_DEVICE_WHERE) { cpu_device::thread_fence(where); }
inline void __threadfence_block() {}
/// Relaxed, at the scope of the device. @return what was there before
template <class T>
T atomicAdd(T* address, T value, CPU_DEVICE_WHERE) {
  cpu_device::atomic_begins(address, /*releases=*/false, where);
  const T before = std::atomic_ref<T>(*address).fetch_add(value);
  cpu_device::atomic_ended(address, /*acquires=*/false, where);
  return before;
}
inline void __nanosleep(unsigned, CPU_DEVICE_WHERE) { cpu_device::poll("__nanosleep", where); }

/// One access, also of 16 bytes: other loads of a struct compilers split where only its parts are used.
template <class T>
T __ldg(const T* pointer, CPU_DEVICE_WHERE) {
  cpu_device::note_read_only_load(pointer, sizeof(T), where);
  if constexpr (sizeof(T) == 16) {
    __extension__ using Whole = unsigned __int128;
    const Whole whole = *reinterpret_cast<const volatile Whole*>(pointer);
    return *reinterpret_cast<const T*>(&whole);
  } else {
    return *pointer;
  }
}
[[noreturn]] inline void __trap(CPU_DEVICE_WHERE) { cpu_device::trap(where); }

inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline int __float_as_int(float value) {
  int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __float_as_uint(float value) { return static_cast<unsigned>(__float_as_int(value)); }
inline float __uint_as_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }
