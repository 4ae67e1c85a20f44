/// @file
/// Shadow of common/cuda/residency.hpp: the grid of a persistent kernel on the CPU device.
#pragma once
#include <algorithm>
#include <cstddef>

namespace ladder {

/// Few enough that even small problems give every block several tiles, which is where hand-overs go wrong.
constexpr int kResidentBlocks = 4;

template <class... Params>
int resident_blocks(void (*)(Params...), int, size_t) {
  return kResidentBlocks;
}

/// At least two, so that clusters share work, however large they are.
template <class... Params>
int resident_clusters(void (*kernel)(Params...), int threads, size_t shared_bytes, int blocks) {
  return std::max(2, resident_blocks(kernel, threads, shared_bytes) / blocks);
}

}  // namespace ladder
