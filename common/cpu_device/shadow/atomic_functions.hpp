/// @file
/// Part of the shadow of <cuda_runtime.h>: atomicAdd and its siblings. They are relaxed.
#pragma once
#include <atomic>
#include <cstring>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"

namespace cpu_device {

template <class T, class... Types>
constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

struct AtomicCall {
  const char* name;
  Location where;
  bool releases = false, acquires = false;
  bool is_of_device = true;
};

/// atomic_looked(), with the number that was found where it is a whole one.
template <class T>
void looked(T* address, T before, bool changed, const char* what, Location where) {
  if constexpr (std::is_integral_v<T>) {
    const auto found = static_cast<long long>(before);
    atomic_looked(address, changed, what, where, &found);
  } else {
    atomic_looked(address, changed, what, where);
  }
}

/// *address becomes change(*address), at once. @return what was there before
template <class T, class Change>
T atomic_change(T* address, const AtomicCall& call, const Change& change) {
  const std::atomic_ref<T> object(*address);
  atomic_begins(address, call.releases, call.where, call.is_of_device);
  T before = object.load(), after = change(before);
  while (!object.compare_exchange_weak(before, after)) after = change(before);
  const bool changed = std::memcmp(&before, &after, sizeof after) != 0;
  note_atomic(address, sizeof(T), changed, call.name, call.where);
  atomic_ended(address, call.acquires, call.where, call.is_of_device);
  looked(address, before, changed, call.name, call.where);
  return before;
}

/// Stores `desired` where `expected` is found; else it is a load.
template <class T>
T atomic_compare(T* address, T expected, T desired, bool is_of_device, Location where) {
  T before = expected;
  const bool stored = std::atomic_ref<T>(*address).compare_exchange_strong(before, desired);
  if (stored) atomic_begins(address, /*releases=*/false, where, is_of_device);
  note_atomic(address, sizeof(T), stored, "atomicCAS", where);
  atomic_ended(address, /*acquires=*/false, where, is_of_device);
  looked(address, before, stored && std::memcmp(&before, &desired, sizeof desired) != 0, "atomicCAS", where);
  return before;
}

}  // namespace cpu_device

/// `result` is computed of `before` and `value`; `types` are those that CUDA has.
#define CPU_DEVICE_ATOMIC_OF_SCOPE(name, is_of_device, result, types)                                    \
  template <class T>                                                                                     \
  T name(T* address, std::type_identity_t<T> value, CPU_DEVICE_WHERE) {                                  \
    static_assert(cpu_device::kIsOneOf<T, CPU_DEVICE_TYPES types>,                                       \
                  #name " of CUDA takes pointers to " #types);                                           \
    return cpu_device::atomic_change(address, {#name, where, false, false, is_of_device},                \
                                     [&]([[maybe_unused]] T before) { return static_cast<T>(result); }); \
  }
#define CPU_DEVICE_TYPES(...) __VA_ARGS__
#define CPU_DEVICE_ATOMIC(name, result, types)                   \
  CPU_DEVICE_ATOMIC_OF_SCOPE(name, true, result, types)          \
  CPU_DEVICE_ATOMIC_OF_SCOPE(name##_system, true, result, types) \
  CPU_DEVICE_ATOMIC_OF_SCOPE(name##_block, false, result, types)

struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;

CPU_DEVICE_ATOMIC(atomicAdd, before + value,
                  (int, unsigned, unsigned long long, float, double, __half, __half2, __nv_bfloat16,
                   __nv_bfloat162))
CPU_DEVICE_ATOMIC(atomicSub, before - value, (int, unsigned))
CPU_DEVICE_ATOMIC(atomicExch, value, (int, unsigned, unsigned long long, float))
CPU_DEVICE_ATOMIC(atomicMin, before < value ? before : value, (int, unsigned, long long, unsigned long long))
CPU_DEVICE_ATOMIC(atomicMax, before < value ? value : before, (int, unsigned, long long, unsigned long long))
CPU_DEVICE_ATOMIC(atomicAnd, before& value, (int, unsigned, unsigned long long))
CPU_DEVICE_ATOMIC(atomicOr, before | value, (int, unsigned, unsigned long long))
CPU_DEVICE_ATOMIC(atomicXor, before ^ value, (int, unsigned, unsigned long long))
CPU_DEVICE_ATOMIC(atomicInc, before >= value ? 0 : before + 1, (unsigned))
CPU_DEVICE_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1, (unsigned))

#define CPU_DEVICE_ATOMIC_CAS(name, is_of_device)                                                           \
  template <class T>                                                                                        \
  T name(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired, CPU_DEVICE_WHERE) { \
    static_assert(cpu_device::kIsOneOf<T, int, unsigned, unsigned long long, unsigned short>,               \
                  #name " of CUDA takes pointers to int, unsigned, unsigned long long, unsigned short");    \
    return cpu_device::atomic_compare(address, expected, desired, is_of_device, where);                     \
  }
CPU_DEVICE_ATOMIC_CAS(atomicCAS, true)
CPU_DEVICE_ATOMIC_CAS(atomicCAS_system, true)
CPU_DEVICE_ATOMIC_CAS(atomicCAS_block, false)

#undef CPU_DEVICE_ATOMIC_OF_SCOPE
#undef CPU_DEVICE_TYPES
#undef CPU_DEVICE_ATOMIC
#undef CPU_DEVICE_ATOMIC_CAS
