/// @file
/// Shadow of common/device/shared_storage.cuh.
#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"

namespace ladder {

/// ".b[2].panels[1][32][0]": the byte at `offset` of the T that lies at `base`, as far as the names of its
/// members are known; empty where none has that byte.
template <class T>
std::string name_of_byte(const std::byte* base, size_t offset) {
  if constexpr (std::is_array_v<T>) {
    using Element = std::remove_extent_t<T>;
    const size_t skipped = offset / sizeof(Element) * sizeof(Element);
    return "[" + std::to_string(offset / sizeof(Element)) + "]" +
           name_of_byte<Element>(base + skipped, offset - skipped);
  } else if constexpr (std::is_class_v<T>) {
    const T& object = *reinterpret_cast<const T*>(base);
#define LADDER_MEMBER(name)                                                                              \
  if constexpr (requires { requires std::is_member_object_pointer_v<decltype(&T::name)>; }) {            \
    const auto skipped = static_cast<size_t>(reinterpret_cast<const std::byte*>(&object.name) - base);   \
    if (offset >= skipped && offset < skipped + sizeof object.name)                                      \
      return "." #name +                                                                                 \
             name_of_byte<std::remove_cvref_t<decltype(object.name)>>(base + skipped, offset - skipped); \
  }
#include "shared_members.inc"
#undef LADDER_MEMBER
    return "";
  } else {
    return "";
  }
}

/// The dynamic shared memory of this block, seen as a T.
template <class T>
T& shared_storage(CPU_DEVICE_WHERE) {
  static_assert(alignof(T) <= 1024);
  return *static_cast<T*>(cpu_device::shared_storage(sizeof(T), alignof(T), where, &name_of_byte<T>));
}

}  // namespace ladder
