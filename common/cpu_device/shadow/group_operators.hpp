/// @file
/// Part of the shadows of <cooperative_groups/reduce.h> and <cooperative_groups/scan.h>: their operators.
#pragma once

namespace cooperative_groups {

#define CPU_DEVICE_GROUP_OPERATOR(name, result)                                   \
  template <class T>                                                              \
  struct name {                                                                   \
    T operator()(const T& a, const T& b) const { return static_cast<T>(result); } \
  };
CPU_DEVICE_GROUP_OPERATOR(plus, a + b)
CPU_DEVICE_GROUP_OPERATOR(less, b < a ? b : a)
CPU_DEVICE_GROUP_OPERATOR(greater, a < b ? b : a)
CPU_DEVICE_GROUP_OPERATOR(bit_and, a& b)
CPU_DEVICE_GROUP_OPERATOR(bit_or, a | b)
CPU_DEVICE_GROUP_OPERATOR(bit_xor, a ^ b)
#undef CPU_DEVICE_GROUP_OPERATOR

}  // namespace cooperative_groups
