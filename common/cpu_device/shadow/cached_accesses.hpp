/// @file
/// Part of the shadow of <cuda_runtime.h>: loads and stores that say how caches shall treat them. There are
/// no caches here. Each is one access, also of 16 bytes: other loads of a struct compilers split where only
/// its parts are used.
#pragma once
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

__extension__ using SixteenBytes = unsigned __int128;

template <class T>
T load_whole(const T* pointer) {
  if constexpr (sizeof(T) == 16) {
    const SixteenBytes whole = *reinterpret_cast<const volatile SixteenBytes*>(pointer);
    return *reinterpret_cast<const T*>(&whole);
  } else {
    return *pointer;
  }
}
/// Races with no atomic operation.
template <class T>
T load_volatile(const T* pointer) {
  if constexpr (std::is_arithmetic_v<T>)
    return *static_cast<const volatile T*>(pointer);
  else
    return load_whole(pointer);
}
template <class T>
void store_whole(T* pointer, const T& value) {
  if constexpr (sizeof(T) == 16) {
    *reinterpret_cast<volatile SixteenBytes*>(pointer) = *reinterpret_cast<const SixteenBytes*>(&value);
  } else {
    *pointer = value;
  }
}

}  // namespace cpu_device

template <class T>
T __ldg(const T* pointer, CPU_DEVICE_WHERE) {
  cpu_device::note_read_only_load(pointer, sizeof(T), where);
  return cpu_device::load_whole(pointer);
}

#define CPU_DEVICE_LOAD(name)               \
  template <class T>                        \
  T name(const T* pointer) {                \
    return cpu_device::load_whole(pointer); \
  }
CPU_DEVICE_LOAD(__ldca)
CPU_DEVICE_LOAD(__ldcs)
CPU_DEVICE_LOAD(__ldlu)
#undef CPU_DEVICE_LOAD

// With these two kernels look whether another block has stored something.
#define CPU_DEVICE_LOAD_AGAIN(name)                                      \
  template <class T>                                                     \
  T name(const T* pointer, CPU_DEVICE_WHERE) {                           \
    cpu_device::atomic_looked(pointer, /*changed=*/false, #name, where); \
    return cpu_device::load_volatile(pointer);                           \
  }
CPU_DEVICE_LOAD_AGAIN(__ldcg)
CPU_DEVICE_LOAD_AGAIN(__ldcv)
#undef CPU_DEVICE_LOAD_AGAIN

#define CPU_DEVICE_STORE(name)                           \
  template <class T>                                     \
  void name(T* pointer, std::type_identity_t<T> value) { \
    cpu_device::store_whole(pointer, value);             \
  }
CPU_DEVICE_STORE(__stwb)
CPU_DEVICE_STORE(__stcg)
CPU_DEVICE_STORE(__stcs)
CPU_DEVICE_STORE(__stwt)
#undef CPU_DEVICE_STORE
