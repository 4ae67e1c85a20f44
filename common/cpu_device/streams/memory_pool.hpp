/// @file
/// Memory pools: memory that is given out and taken back in the order of streams. Private to the host's side
/// of the CPU device.
///
/// Freed memory is given out again where its free comes before the new allocation in the order that the
/// program has made: in the same stream, by events, or by a wait of the host. CUDA may also reuse what
/// happens to be free already, or add dependencies of its own; a program that relies on that is not in order
/// here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/cpu_device/declarations/host_types.hpp"
#include "common/cpu_device/streams/memory_table.hpp"

struct CUmemPoolHandle_st {
  CUmemPoolHandle_st(int device, size_t max_bytes) : device(device), max_bytes_(max_bytes) {}
  ~CUmemPoolHandle_st();

  /// @param known what the allocation comes after; its operation will poison the memory
  /// @return null if there is not enough memory
  std::byte* allocate(size_t bytes, const cpu_device::OrderClock& known);
  /// May be given out again to what comes after `freed`.
  void give_back(std::byte* pointer, const cpu_device::OrderClock& freed, uint64_t freed_by);
  /// Gives back chunks that nobody uses, the last first, until at most `bytes` are reserved.
  void trim(size_t bytes);

  struct Statistics {
    uint64_t current = 0, high = 0;
    void set(uint64_t bytes);
  };
  const int device;
  Statistics reserved, used;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};       ///< attributes that are kept, without effect
  std::set<int> accessible_from;  ///< other devices
  size_t live = 0;                ///< allocations
  bool is_destroyed = false;      ///< by the program; exists until its memory is not used any more

 private:
  struct Segment {
    size_t bytes = 0;
    size_t asked_for = 0;  ///< 0 where it is free
    cpu_device::OrderClock free_after;
    uint64_t freed_by = 0;  ///< the latest operation that freed a part of it
  };
  struct Chunk {
    std::byte* begin = nullptr;
    size_t bytes = 0;
    std::map<size_t, Segment> segments;  ///< by offset
  };
  std::byte* take(Chunk&, std::map<size_t, Segment>::iterator, size_t asked_for, size_t bytes);
  bool add_chunk(size_t bytes);

  size_t max_bytes_;  ///< 0: as much as there is
  std::vector<Chunk> chunks_;
};

namespace cpu_device {

/// The memory of a fresh or a freed allocation: NaN. The end of a fresh one, which has a name, is guarded, up
/// to the next multiple of 256 bytes. (Not what is free: whoever uses that is named when its order is
/// checked, which needs the use to go through.)
void poison_pool_memory(std::byte* begin, size_t bytes, const std::string& name = "");
/// The memory of each device, and what of it is left, in bytes.
size_t device_bytes();
size_t free_device_bytes(int device);

}  // namespace cpu_device
