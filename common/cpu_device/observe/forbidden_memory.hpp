/// @file
/// Global memory that no kernel may touch: what lies just before and behind an allocation, and what was
/// freed.
///
/// The host's side marks such zones when it gives memory out and takes it back. All other memory is allowed:
/// live allocations, and what the host has and a kernel reaches all the same, such as what a lambda captures.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cpu_device {

/// What an allocation holds, if the program has said so.
struct NamedMatrix {
  std::string name;
  int rows = 0, columns = 0;  ///< row-major, without gaps
  size_t element_bytes = 0;

  /// ", which holds B, 264 x 136: column 8 of row 300", of an access that begins so many bytes behind the
  /// first element; nothing if it has no name.
  std::string describe_place(int64_t begin) const;
};

struct ForbiddenZone {
  uintptr_t begin = 0, end = 0;
  // The allocation that it belongs to:
  uintptr_t allocation = 0;
  size_t bytes = 0;
  std::string name;  ///< "the buffer of 4096 bytes of cudaMalloc"
  bool freed = false;
  NamedMatrix matrix = {};
  /// Nothing lies there: what null pointers lead to.
  bool is_null() const { return begin == 0; }

  /// "reaches 4 bytes beyond the end of the buffer of 4096 bytes of cudaMalloc", of an access to it.
  std::string describe(const void* address, size_t bytes) const;
};

/// Of the process. Any thread may call it.
class ForbiddenMemory {
 public:
  using Zones = std::vector<ForbiddenZone>;  ///< by address; no two overlap

  ForbiddenMemory();
  static ForbiddenMemory& instance();
  void forbid(const ForbiddenZone&);
  /// Forgets the zones that begin in [begin, end).
  void allow(uintptr_t begin, uintptr_t end);
  /// Says what the allocation that begins there holds.
  void name(uintptr_t allocation, const NamedMatrix&);
  /// All zones as they are now.
  std::shared_ptr<const Zones> snapshot();

 private:
  std::mutex mutex_;
  std::map<uintptr_t, ForbiddenZone> zones_;
  std::shared_ptr<const Zones> snapshot_;  ///< null after a change
};

/// Judges the accesses of a kernel. One for each OS thread and launch: what is given out or taken back while
/// a kernel runs is none of its business, so a snapshot will do.
class MemoryGuard {
 public:
  MemoryGuard() : zones_(ForbiddenMemory::instance().snapshot()) {}

  /// The zone that the access touches; null if it is allowed.
  const ForbiddenZone* forbids(const void* pointer, size_t bytes) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    for (const Allowed& range : recent_) {
      if (address >= range.begin && address + bytes <= range.end) return nullptr;
    }
    return look_up(address, bytes);
  }
  /// Whether it is in memory that the host has allocated.
  bool is_allocated(const void* pointer) const;
  /// "byte 2 of the buffer of 64 bytes of cudaMalloc"; empty where it is in no such memory.
  std::string name_place(const void* pointer) const;

 private:
  /// What lies between two zones: an allocation, usually.
  struct Allowed {
    uintptr_t begin = 0, end = 0;
  };
  /// As many as the matrices of a product, and some for what a kernel keeps besides: a bias, partial sums.
  static constexpr unsigned kRecent = 8;

  const ForbiddenZone* look_up(uintptr_t address, size_t bytes);

  const std::shared_ptr<const ForbiddenMemory::Zones> zones_;
  Allowed recent_[kRecent];
  unsigned oldest_ = 0;
};

}  // namespace cpu_device
