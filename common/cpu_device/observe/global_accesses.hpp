/// @file
/// Which pieces of global memory a kernel reads and writes, for the order between operations of streams.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cpu_device {

/// Pieces of memory, merged where they meet.
class Ranges {
 public:
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  void add(const void* begin, size_t bytes) {
    const auto from = reinterpret_cast<uintptr_t>(begin);
    if (!ranges_.empty() && from >= ranges_.back().begin && from <= ranges_.back().end) {
      if (from + bytes > ranges_.back().end) ranges_.back().end = from + bytes;
      return;
    }
    if (!bytes) return;
    ranges_.push_back({from, from + bytes});
    if (ranges_.size() >= merge_at_) merge();
  }
  void add(const Ranges& other);
  const std::vector<Range>& merged();

 private:
  void merge();
  std::vector<Range> ranges_;
  size_t merge_at_ = 4096;
};

/// The global memory that a kernel has touched, as far as the emulator sees it.
struct GlobalAccesses {
  Ranges reads, writes;
};

/// Of the kernel that runs now on this OS thread's behalf; null if nobody wants to know.
inline thread_local GlobalAccesses* accesses_of_running_kernel = nullptr;

}  // namespace cpu_device
