/// @file
/// Shadow of <cooperative_groups/memcpy_async.h>: copies that a group makes together, one batch for each
/// call.
#pragma once
#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/cpu_device/shadow/memcpy_async.hpp"

namespace cooperative_groups {

namespace details {

/// Byte by byte, by all threads of the group in turn.
template <class Group>
void copy_plainly(const Group& group, unsigned char* to, const unsigned char* from, size_t bytes,
                  cpu_device::Location where) {
  cpu_device::copy_chunks<1>(group, to, from, bytes, where);
}

/// The middle, which is aligned, with cp.async; the ends plainly.
template <size_t kAlignment, class Group>
void copy_middle(const Group& group, unsigned char* to, const unsigned char* from, size_t bytes,
                 cpu_device::Location where) {
  const size_t head =
      std::min(bytes, (kAlignment - reinterpret_cast<uintptr_t>(from) % kAlignment) % kAlignment);
  const size_t middle = (bytes - head) / kAlignment * kAlignment;
  copy_plainly(group, to, from, head, where);
  cpu_device::copy_chunks<kAlignment>(group, to + head, from + head, middle, where);
  copy_plainly(group, to + head + middle, from + head + middle, bytes - head - middle, where);
}

/// Of types that promise at least 4 bytes of alignment whole chunks are copied; for others the original finds
/// out at run time what both addresses have in common.
template <size_t kAlignment, class Group>
void copy(const Group& group, unsigned char* to, const unsigned char* from, size_t bytes,
          cpu_device::Location where) {
  if constexpr (kAlignment >= 4) {
    constexpr size_t kChunk = std::min<size_t>(kAlignment, 16);
    cpu_device::copy_chunks<kChunk>(group, to, from, bytes / kChunk * kChunk, where);
  } else {
    const uintptr_t difference = reinterpret_cast<uintptr_t>(to) ^ reinterpret_cast<uintptr_t>(from);
    if (bytes >= 16 && difference % 16 == 0) {
      copy_middle<16>(group, to, from, bytes, where);
    } else if (bytes >= 8 && difference % 8 == 0) {
      copy_middle<8>(group, to, from, bytes, where);
    } else if (bytes >= 4 && difference % 4 == 0) {
      copy_middle<4>(group, to, from, bytes, where);
    } else {
      copy_plainly(group, to, from, bytes, where);
    }
  }
}

template <class T>
constexpr size_t kAlignmentOf = alignof(T);
template <>
inline constexpr size_t kAlignmentOf<void> = 1;

template <class Size, class T>
constexpr size_t kPromise = std::max(cpu_device::kAlignmentOf<Size>, kAlignmentOf<T>);

}  // namespace details

/// Copies `bytes` bytes and closes the batch.
template <class Group, class T, class Size>
void memcpy_async(const Group& group, T* to, const T* from, const Size& bytes, CPU_DEVICE_WHERE) {
  details::copy<details::kPromise<Size, T>>(group, reinterpret_cast<unsigned char*>(to),
                                            reinterpret_cast<const unsigned char*>(from),
                                            static_cast<size_t>(bytes), where);
  __pipeline_commit(where);
}

/// Copies the elements that both layouts have, and closes the batch. Layouts are counts of elements.
template <class Group, class T, class ToLayout, class FromLayout>
void memcpy_async(const Group& group, T* to, const ToLayout& to_count, const T* from,
                  const FromLayout& from_count, CPU_DEVICE_WHERE) {
  const size_t count = std::min(static_cast<size_t>(to_count), static_cast<size_t>(from_count));
  details::copy<details::kPromise<ToLayout, T>>(group, reinterpret_cast<unsigned char*>(to),
                                                reinterpret_cast<const unsigned char*>(from),
                                                count * sizeof(T), where);
  __pipeline_commit(where);
}

/// Waits until at most kPrior batches are unfinished, then for the group.
template <unsigned kPrior, class Group>
void wait_prior(const Group& group, CPU_DEVICE_WHERE) {
  __pipeline_wait_prior(kPrior, where);
  group.sync(where);
}
/// Waits for all batches, then for the group.
template <class Group>
void wait(const Group& group, CPU_DEVICE_WHERE) {
  __pipeline_wait_prior(0, where);
  group.sync(where);
}

}  // namespace cooperative_groups
