/// @file
/// Shadow of <cooperative_groups/reduce.h>.
#pragma once
#include <cooperative_groups.h>

#include "common/cpu_device/shadow/group_operators.hpp"

namespace cooperative_groups {

/// What `operation` makes of the values of all threads of the group, which all get it.
template <class Group, class T, class Operation>
T reduce(const Group& group, const T& value, Operation&& operation, CPU_DEVICE_WHERE) {
  T result = value;
  const unsigned size = group.size();
  if ((size & (size - 1)) == 0) {
    for (unsigned distance = size / 2; distance; distance /= 2)
      result = operation(result, group.shfl_xor(result, distance, where));
    return result;
  }
  result = group.shfl(value, 0, where);
  for (unsigned rank = 1; rank < size; ++rank) result = operation(result, group.shfl(value, rank, where));
  return result;
}

}  // namespace cooperative_groups
