/// @file
/// Shadow of common/cuda/residency.hpp: the grid of a persistent kernel on the CPU device.
#pragma once
#include <algorithm>
#include <cstddef>

#include "common/cpu_device/kernel/engine.hpp"

namespace ladder {

/// Few enough that even small problems give every block several tiles, which is where hand-overs go wrong. A
/// test of large clusters may want more, and sets this before it asks for the first kernel.
inline int blocks_at_once = 4;

/// Of the persistent kernel that was asked for last: has each of its clusters one piece of work alone?
inline bool has_one_piece_each = false;

template <class... Params>
int resident_blocks(void (*kernel)(Params...), int, size_t) {
  cpu_device::note_persistent(reinterpret_cast<const void*>(kernel));
  return blocks_at_once;
}

template <class... Params>
int resident_clusters(void (*kernel)(Params...), int threads, size_t shared_bytes, int blocks) {
  return std::max(1, resident_blocks(kernel, threads, shared_bytes) / blocks);
}

}  // namespace ladder
