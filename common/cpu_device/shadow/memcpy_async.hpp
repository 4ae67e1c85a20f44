/// @file
/// How libcu++'s memcpy_async chooses between cp.async and a plain copy. Part of the shadows of
/// <cuda/barrier> and <cuda/pipeline>.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/shadow/thread_scope.hpp"

namespace cpu_device {

/// The group of a copy that one thread makes alone.
struct SingleThread {
  static constexpr size_t size() { return 1; }
  static constexpr size_t thread_rank() { return 0; }
};

/// What a size says about alignment: nothing, unless it is a cuda::aligned_size_t.
template <class Size>
constexpr size_t kAlignmentOf = 1;
template <size_t kAlignment>
constexpr size_t kAlignmentOf<cuda::aligned_size_t<kAlignment>> = kAlignment;

template <size_t kBytes>
struct alignas(kBytes) CopyChunk {
  unsigned char bytes[kBytes];
};

/// The group copies `size` bytes, thread by thread in turn, in chunks of kAlignment bytes but at most 16.
/// With an alignment below 4, or not from global to shared memory, there is no cp.async: the copy is an
/// ordinary one and complete when the call returns. Like libcu++, this copies whole chunks: a size that is no
/// multiple of the alignment overruns. All of this is inlined, so that reports find who called it.
template <size_t kAlignment, class Group>
[[gnu::always_inline]] inline cuda::async_contract_fulfillment copy_chunks(const Group& group,
                                                                           unsigned char* to,
                                                                           const unsigned char* from,
                                                                           size_t size, Location where) {
  constexpr size_t kChunk = ::std::min<size_t>(kAlignment, 16);
  const size_t first = static_cast<size_t>(group.thread_rank()) * kChunk;
  const size_t step = static_cast<size_t>(group.size()) * kChunk;
  if constexpr (kChunk >= 4) {
    if (is_shared(to) && is_global(from)) {
      for (size_t i = first; i < size; i += step) copy_async(to + i, from + i, kChunk, kChunk, where);
      return cuda::async_contract_fulfillment::async;
    }
  }
  for (size_t i = first; i < size; i += step) {
    *reinterpret_cast<CopyChunk<kChunk>*>(to + i) = *reinterpret_cast<const CopyChunk<kChunk>*>(from + i);
  }
  return cuda::async_contract_fulfillment::none;
}

/// The alignment is that of T or of the size, whichever is larger.
template <class Group, class T, class Size>
[[gnu::always_inline]] inline cuda::async_contract_fulfillment copy_as_group(const Group& group, T* to,
                                                                             const T* from, Size size,
                                                                             Location where) {
  size_t constexpr type_alignment = [] {
    if constexpr (::std::is_void_v<T>) {
      return size_t{1};
    } else {
      return alignof(T);
    }
  }();
  return copy_chunks<::std::max(type_alignment, kAlignmentOf<Size>)>(
      group, reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(from), size, where);
}

}  // namespace cpu_device
