/// @file
/// Shadow of <cooperative_groups/scan.h>.
#pragma once
#include <cooperative_groups.h>

#include "common/cpu_device/shadow/group_operators.hpp"

namespace cooperative_groups {

/// What `operation` makes of the values of the threads up to this one.
template <class Group, class T, class Operation = plus<T>>
T inclusive_scan(const Group& group, const T& value, Operation&& operation = {}, CPU_DEVICE_WHERE) {
  T result = value;
  for (unsigned distance = 1; distance < group.size(); distance *= 2) {
    const T before = group.shfl_up(result, distance, where);
    if (group.thread_rank() >= distance) result = operation(before, result);
  }
  return result;
}
/// Of those before this one; T() for the first.
template <class Group, class T, class Operation = plus<T>>
T exclusive_scan(const Group& group, const T& value, Operation&& operation = {}, CPU_DEVICE_WHERE) {
  const T before = group.shfl_up(inclusive_scan(group, value, operation, where), 1, where);
  return group.thread_rank() ? before : T{};
}

}  // namespace cooperative_groups
