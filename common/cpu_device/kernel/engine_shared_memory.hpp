/// @file
/// A block's shared memory: its two views, and its addresses.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

struct Thread;

/// Address of byte 0 of a block's dynamic shared memory in its shared window; Hopper reserves the first 1024.
constexpr uint32_t kSharedWindowBase = 1024;

/// The row within which the 128-byte swizzle moves chunks of 16 bytes.
constexpr uint32_t kSwizzleRowBytes = 128;

/// Two views of a block's shared memory. Threads use the generic one; the async proxy sees a write of a
/// thread only after a fence. Exactly as large as the launch says, so that AddressSanitizer sees the end.
class SharedMemory {
 public:
  /// @param capacity what it may grow to
  SharedMemory(size_t bytes, size_t capacity);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;

  /// Every bit pattern is a NaN.
  void poison();
  /// Adds memory, poisoned, at the end.
  void grow(size_t bytes);
  /// fence.proxy.async: what is in the generic view now is in the async view when it is read next.
  void fence();
  /// The async view, up to date with the fences. For those who read it: wgmma, TMA stores.
  const std::byte* read_async_view();
  /// A write through the async proxy, which threads see once they have waited for it.
  void write_both_views(size_t offset, const std::byte* data, size_t bytes);
  std::byte* generic() { return generic_; }
  size_t bytes() const { return bytes_; }
  size_t capacity() const { return capacity_; }
  bool contains(const void* pointer) const { return pointer >= generic_ && pointer < generic_ + bytes_; }

 private:
  void publish();

  size_t bytes_, capacity_;
  std::byte* generic_ = nullptr;
  std::byte* async_ = nullptr;
  uint64_t fences_ = 0;         ///< since the last read
  uint64_t fences_before_ = 0;  ///< between the last two reads
  bool publish_due_ = false;
};

/// Offset of the pointer in shared memory of the thread's block. @throws if it lies elsewhere.
uint32_t shared_offset(Thread&, const void* pointer, size_t bytes, const char* what, Location where);

}  // namespace cpu_device
