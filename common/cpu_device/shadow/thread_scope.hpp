/// @file
/// Part of the shadows of <cuda/barrier> and <cuda/pipeline>: words that they share.
#pragma once
#include <cstddef>

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

/// A size of which the caller promises that it, and both addresses, are multiples of kAlignment.
template <size_t kAlignment>
struct aligned_size_t {
  static constexpr size_t align = kAlignment;
  size_t value;
  constexpr explicit aligned_size_t(size_t size) : value(size) {}
  constexpr operator size_t() const { return value; }
};

/// Whether a copy was really asynchronous.
enum class async_contract_fulfillment { none, async };

}  // namespace cuda
