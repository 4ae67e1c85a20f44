/// @file
/// Which pieces of global memory a kernel reads and writes, for the order between operations of streams.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"

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

/// What one place in the source touches, of accesses that must be judged by themselves.
struct AccessesOfPlace {
  Location where;                        ///< of an operation of the device,
  const void* return_address = nullptr;  ///< or, of a plain load or store, of its hook
  bool write = false;
  Ranges ranges;

  /// "06_clusters_dsmem/gemm.cuh:51".
  std::string describe() const;
};

class AccessesByPlace {
 public:
  void add(const void* begin, size_t bytes, bool write, Location where, const void* return_address = nullptr);
  void add(const AccessesByPlace& other);
  std::vector<AccessesOfPlace>& all() { return all_; }

 private:
  AccessesOfPlace& at(Location where, const void* return_address, bool write);
  std::vector<AccessesOfPlace> all_;
  size_t last_ = 0;  ///< the one that was asked for last
};

/// The global memory that a kernel has touched, as far as the emulator sees it.
struct GlobalAccesses {
  Ranges reads, writes;
  /// Of a kernel that begins early: what blocks touched before one of their threads had waited for the kernel
  /// before. Also in `reads` and `writes`.
  AccessesByPlace early;
  bool waited_for_grid_before = false;  ///< somebody has
  bool has_atomics = false;             ///< has changed something by an atomic operation
  AccessesByPlace copied;               ///< by cp.async and TMA; also in `reads` and `writes`
  AccessesByPlace read_only;            ///< read with __ldg; also in `reads`

  void add(const GlobalAccesses& other);
};

/// Of the kernel that runs now on this OS thread's behalf; null if nobody wants to know.
inline thread_local GlobalAccesses* accesses_of_running_kernel = nullptr;

}  // namespace cpu_device
