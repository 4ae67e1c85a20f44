/// @file
/// Which pieces of global memory a kernel reads and writes, for the order between operations of streams.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/base/unwritten.hpp"

namespace cpu_device {

/// A `__device__` variable: global memory, though it lies in the program's image. Called before main().
void add_device_variable(const void* begin, size_t bytes);
bool is_device_variable(const void* address);

/// Pieces of memory, merged where they meet.
class Ranges {
 public:
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  void add(const void* begin, size_t bytes) {
    const auto from = reinterpret_cast<uintptr_t>(begin);
    uint32_t& last = last_near_[from / kNearBytes * kSpread >> (64 - kNearBits)];
    if (last < ranges_.size() && from >= ranges_[last].begin && from <= ranges_[last].end) {
      if (from + bytes > ranges_[last].end) ranges_[last].end = from + bytes;
      return;
    }
    if (!bytes) return;
    last = static_cast<uint32_t>(ranges_.size());
    ranges_.push_back({from, from + bytes});
    if (ranges_.size() >= merge_at_) merge();
  }
  void add(const Ranges& other);
  const std::vector<Range>& merged();
  bool is_empty() const { return ranges_.empty(); }
  bool has(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const Range& range) { return at >= range.begin && at < range.end; });
  }

 private:
  void merge();
  std::vector<Range> ranges_;
  size_t merge_at_ = 4096;

  // A thread that reads a row of A and a column of B goes from one to the other, so that the piece to extend
  // is seldom the last one. It is looked for where an access nearby has left it: a hint, which may be wrong.
  static constexpr uintptr_t kNearBytes = 256;
  static constexpr unsigned kNearBits = 10;
  static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;  ///< neighbouring numbers go far from each other
  std::array<uint32_t, 1 << kNearBits> last_near_{};
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
  /// Of a programmatic dependent launch: what blocks touched before one of their threads had waited for the
  /// kernel before. Also in `reads` and `writes`.
  AccessesByPlace early;
  bool only_writes = false;             ///< nobody wants to know the plain loads
  bool waited_for_grid_before = false;  ///< somebody has
  bool has_atomics = false;             ///< has changed something by an atomic operation
  AccessesByPlace copied;               ///< by cp.async and TMA; also in `reads` and `writes`
  AccessesByPlace read_only;            ///< read with __ldg; also in `reads`
  /// A read of what fresh memory holds, and nobody had stored there in the same cluster.
  struct UnwrittenRead {
    const std::byte* address = nullptr;
    const char* what = "";
    Location where;                        ///< of an atomic operation,
    const void* return_address = nullptr;  ///< or of the hook of a load
  };
  std::vector<UnwrittenRead> unwritten;  ///< a few
  Ranges given_back;                     ///< by the host function that runs: it has no right to them any more
  UnwrittenRead read_of_given_back;      ///< the first that came after that
  /// Somebody is about to read these bytes.
  void note_read(const void* address, size_t bytes, const char* what, Location where,
                 const void* return_address = nullptr) {
    if (!given_back.is_empty() && !read_of_given_back.address && given_back.has(address))
      read_of_given_back = {static_cast<const std::byte*>(address), what, where, return_address};
    if (bytes >= sizeof(uint32_t) && is_fresh(address))
      remember_read({static_cast<const std::byte*>(address), what, where, return_address});
  }

  void add(const GlobalAccesses& other);

 private:
  static bool is_fresh(const void* address) {
    uint32_t word = 0;
    std::memcpy(&word, address, sizeof word);
    return word == 0x01010101u * static_cast<uint32_t>(unwritten_byte);
  }
  void remember_read(const UnwrittenRead&);
  size_t looks_ = 0;
};

/// Of the kernel that runs now on this OS thread's behalf; null if nobody wants to know.
inline thread_local GlobalAccesses* accesses_of_running_kernel = nullptr;

}  // namespace cpu_device
