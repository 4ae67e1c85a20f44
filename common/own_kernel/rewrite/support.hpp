/// @file
/// What a rewritten source calls: launches, and variables in shared memory. It is included before the
/// reader's first line.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>

#include "common/cpu_device/api/kernel_launch.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/own_kernel/ptx/asm.hpp"

/// g++ tells hooks of no more than 16 bytes, of a number known then, that these touch. What a library's
/// template calls, as std::copy does, main.cpp has, and looks at what the host does.
extern "C" {
/// Notes that the host reads so many bytes from here on.
void __tsan_read_range(void*, unsigned long);
/// Notes that the host writes so many bytes from here on.
void __tsan_write_range(void*, unsigned long);
/// The reader's, by another name: it notes what it touches.
void* memcpy(void*, const void*, size_t) noexcept __asm__("ladder_host_memcpy");
/// Likewise.
void* memmove(void*, const void*, size_t) noexcept __asm__("ladder_host_memmove");
/// Likewise.
void* memset(void*, int, size_t) noexcept __asm__("ladder_host_memset");
}

namespace ladder::own {

/// Notes what a call touches, unless g++ tells it by itself. Null: nothing is read, or written.
[[gnu::always_inline]] inline void tell_hooks(const void* to, const void* from, size_t bytes, bool is_known) {
  if (!bytes || (is_known && bytes <= 16)) return;
  if (from) __tsan_read_range(const_cast<void*>(from), bytes);
  if (to) __tsan_write_range(const_cast<void*>(to), bytes);
}
/// What a call of memcpy() in the reader's source becomes.
[[gnu::always_inline]] inline void* memcpy(void* to, const void* from, size_t bytes) {
  tell_hooks(to, from, bytes, __builtin_constant_p(bytes));
  return __builtin_memcpy(to, from, bytes);
}
/// Likewise of memmove().
[[gnu::always_inline]] inline void* memmove(void* to, const void* from, size_t bytes) {
  tell_hooks(to, from, bytes, __builtin_constant_p(bytes));
  return __builtin_memmove(to, from, bytes);
}
/// Likewise of memset().
[[gnu::always_inline]] inline void* memset(void* to, int value, size_t bytes) {
  tell_hooks(to, nullptr, bytes, __builtin_constant_p(bytes));
  return __builtin_memset(to, value, bytes);
}
/// Likewise of memcmp().
[[gnu::always_inline]] inline int memcmp(const void* one, const void* other, size_t bytes) {
  tell_hooks(nullptr, one, bytes, false);
  tell_hooks(nullptr, other, bytes, false);
  return __builtin_memcmp(one, other, bytes);
}

/// What stands between <<< and >>>.
struct Configuration {
  Configuration(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes), stream(stream) {}
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

/// A kernel with its configuration, to be called with its arguments. What is refused, cudaGetLastError()
/// says.
template <class... Params>
struct Launcher {
  const char* name;
  void (*kernel)(Params...);
  Configuration configuration;
  cpu_device::Location where;

  void operator()(Params... params) const {
    cpu_device::KernelLaunch launch{name, configuration.grid, configuration.block, dim3(1, 1, 1),
                                    configuration.shared_bytes};
    launch.where = where;
    launch.function = reinterpret_cast<const void*>(kernel);
    launch.where = where;
    cpu_device::complete_from_declaration(launch);
    if (cpu_device::refused(launch)) return static_cast<void>(cpu_device::refuse(launch));
    if (cpu_device::refusal_without_permission(launch) != cudaSuccess) return;
    cpu_device::enqueue_kernel(kernel, launch, configuration.stream, cpu_device::kDefaultStream,
                               std::tuple<Params...>(params...));
  }
};

/// @param name null where it is not written at the launch: a pointer to a kernel
template <class... Params>
Launcher<Params...> launcher(const char* name, void (*kernel)(Params...), Configuration configuration,
                             CPU_DEVICE_WHERE) {
  return {name, kernel, configuration, where};
}

/// `__device__`, before main().
struct DeviceVariable {
  template <class T>
  explicit DeviceVariable(T& variable) {
    cpu_device::add_device_variable(std::addressof(variable), sizeof variable);
  }
};

/// What reports need to know of a `__shared__` variable of this type.
template <class Type>
constexpr cpu_device::SharedVariable described(size_t alignment) {
  return {nullptr,
          sizeof(Type),
          alignment,
          sizeof(std::remove_all_extents_t<Type>),
          std::rank_v<Type>,
          {std::extent_v<Type, 0>, std::extent_v<Type, 1>, std::extent_v<Type, 2>, std::extent_v<Type, 3>}};
}

/// `__shared__`: one object for each declaration (`Declaration` is of its own type in each instantiation).
template <class Declaration, unsigned kIndex, class Type>
[[gnu::always_inline]] inline Type& shared_variable(
    const char* name, cpu_device::Location where = cpu_device::Location::current()) {
  static constinit cpu_device::SharedVariable variable = described<Type>(alignof(Declaration));
  return *static_cast<Type*>(const_cast<void*>(cpu_device::shared_variable(variable, name, where)));
}

/// `extern __shared__`.
template <class Type>
[[gnu::always_inline]] inline Type& dynamic_shared_memory(
    const char* name, cpu_device::Location where = cpu_device::Location::current()) {
  static constinit cpu_device::SharedVariable variable = described<std::remove_extent_t<Type>>(1);
  return *static_cast<Type*>(const_cast<void*>(cpu_device::dynamic_shared_memory(variable, name, where)));
}

}  // namespace ladder::own
