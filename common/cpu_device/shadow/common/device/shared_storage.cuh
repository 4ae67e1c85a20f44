/// @file
/// Shadow of common/device/shared_storage.cuh.
#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"

namespace ladder {

/// Adds ".b[2].panels[1][32][0]" to the name: the byte at `offset` of the T that lies at `base`, as far as
/// the names of its members are known.
template <class T>
void name_byte(const std::byte* base, size_t offset, std::string& name) {
  if constexpr (std::is_array_v<T>) {
    using Element = std::remove_extent_t<T>;
    const size_t index = offset / sizeof(Element), skipped = index * sizeof(Element);
    cpu_device::add_index(name, index);
    name_byte<Element>(base + skipped, offset - skipped, name);
  } else if constexpr (std::is_class_v<T>) {
    const T& object = *reinterpret_cast<const T*>(base);
#define LADDER_MEMBER(member)                                                                            \
  if constexpr (requires { requires std::is_member_object_pointer_v<decltype(&T::member)>; }) {          \
    const auto skipped = static_cast<size_t>(reinterpret_cast<const std::byte*>(&object.member) - base); \
    if (offset >= skipped && offset < skipped + sizeof object.member) {                                  \
      cpu_device::add_member(name, #member);                                                             \
      name_byte<std::remove_cvref_t<decltype(object.member)>>(base + skipped, offset - skipped, name);   \
      return;                                                                                            \
    }                                                                                                    \
  }
#include "shared_members.inc"
#undef LADDER_MEMBER
  }
}

/// The dynamic shared memory of this block, seen as a T.
template <class T>
T& shared_storage(CPU_DEVICE_WHERE) {
  static_assert(alignof(T) <= 1024);
  return *static_cast<T*>(cpu_device::shared_storage(sizeof(T), alignof(T), where, &name_byte<T>));
}

}  // namespace ladder
