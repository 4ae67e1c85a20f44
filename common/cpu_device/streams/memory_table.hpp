/// @file
/// What memory the program has, who touched it, and whether those who did are in order. Private to the host's
/// side of the CPU device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/cpu_device/streams/stream_operation.hpp"

struct CUmemPoolHandle_st;

namespace cpu_device {

enum class MemoryKind : uint8_t { device, pinned, registered, managed };

/// "the buffer of 4096 bytes allocated on stream 2".
std::string describe_memory(MemoryKind, size_t bytes, const std::string& origin);

/// The stack of the thread that calls, where parameters of kernels lie.
bool is_on_own_stack(const std::byte* place);

/// A slot of pinned memory that a ring of the program hands out and gets back.
struct SlotOfRing {
  std::string name;  ///< "slot 0 of the upload ring"
  bool is_held = true;
  uint64_t since = 0;  ///< it is held, or is not: the operations enqueued by then
  /// It went back while these were queued, and nothing ordered who gave it behind them.
  struct GivenBack {
    std::shared_ptr<const Operation> by;  ///< a host function; null: the host's own code
    std::vector<uintptr_t> callers;       ///< of the host
    std::vector<std::weak_ptr<Operation>> queued;
  };
  std::deque<GivenBack> too_early;
};

struct Allocation {
  MemoryKind kind = MemoryKind::device;
  std::byte* begin = nullptr;
  size_t bytes = 0;
  int device = 0;
  CUmemPoolHandle_st* pool = nullptr;  ///< null: of cudaMalloc, or of the host
  std::string origin;                  ///< "allocated on stream 2", "of cudaMalloc"
  Location where;                      ///< of the call that allocated it
  OperationPointer free;               ///< the cudaFreeAsync, where there was one
  enum class OfGraph { no, allocated, freed };
  OfGraph of_graph = OfGraph::no;  ///< by its nodes
  /// In the calls' order: it exists for operations between these ids.
  uint64_t born = 0, freed = UINT64_MAX;

  struct Record {
    const std::byte *begin, *end;
    bool write;
    OperationPointer operation;
  };
  std::vector<Record> history;
  std::shared_ptr<SlotOfRing> slot;  ///< where a ring of the program has handed it out

  bool contains(const void* pointer) const { return pointer >= begin && pointer < begin + bytes; }
  /// "the buffer of 4096 bytes allocated on stream 2", "slot 0 of the upload ring (pinned memory of 64
  /// bytes)".
  std::string describe() const;
  /// The line of its cudaFreeAsync; nothing where there was none.
  std::string describe_free() const { return free ? free->describe_places() : ""; }
};
using AllocationPointer = std::shared_ptr<Allocation>;

class MemoryTable {
 public:
  /// @param born the operations enqueued so far
  AllocationPointer add(MemoryKind, void* begin, size_t bytes, int device, const std::string& origin,
                        uint64_t born);
  /// Later operations must not use it. Forgets it at once if `is_over`, because nothing can use it any more.
  void free(const AllocationPointer&, uint64_t freed, bool is_over);
  /// Memory that pools give back: nothing is left there to be misused.
  void forget_freed(const std::byte* begin, const std::byte* end);
  /// Of what was freed in the order of a stream and holds this byte no more, the last; null if there is none.
  AllocationPointer find_freed(const void* pointer) const;
  /// The allocation that holds this byte now, in the order of calls; null if none does.
  AllocationPointer find(const void* pointer) const;
  /// The one that held it when that operation was enqueued.
  AllocationPointer find_at(uint64_t id, const void* pointer) const;
  /// The one that begins here; null if there is none.
  AllocationPointer find_begin(const void* pointer) const;
  /// True if the pointer is in memory that was freed and not given out again.
  bool is_freed(const void* pointer) const;
  /// Bytes of all allocations of this kind.
  size_t bytes(MemoryKind) const;

  /// Notes what an operation touches. @throws Failure for freed memory, another device's memory without peer
  /// access, and, if `check_order`, for what is not in order with an earlier note.
  void touch(const OperationPointer&, const Touch&, bool check_order);
  /// @throws Failure if copies of the kernel (cp.async, TMA) touch memory that is neither the device's nor
  /// pinned
  void refuse_pageable(const Operation& kernel, AccessesOfPlace& copies) const;
  /// An operation that is not before the host's clock and touched this; null if there is none.
  OperationPointer user_unknown_to(const OrderClock& host, const Allocation&) const;
  /// Forgets what is before all that is to come, as `common` knows it.
  void prune(const OrderClock& common, uint64_t oldest_pending);
  size_t records() const { return records_; }
  void forget_history();

 private:
  AllocationPointer find_for(const Operation&, const std::byte* begin) const;
  void touch(const OperationPointer&, Allocation&, const std::byte* begin, const std::byte* end, const Touch&,
             bool check_order);

  std::map<const std::byte*, AllocationPointer> live_;
  std::vector<AllocationPointer> freed_;
  size_t records_ = 0;
};

}  // namespace cpu_device
