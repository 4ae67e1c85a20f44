/// @file
/// TMA loads and stores in flight, and what the two have in common.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine_async.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/tensor_map.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

/// One TMA load, or what one block receives of a multicast.
struct TmaLoad : CountedCopy {
  TmaBox box;
  uint32_t mask = 0;  ///< of a multicast: a bit for each block that receives

  void land(Cluster&) override;
  uint32_t bytes() const override { return box.bytes(); }
  const char* arrival() const override {
    return box.is_bulk ? "bytes of a bulk copy" : mask ? "bytes of a TMA multicast" : "bytes of a TMA load";
  }
  const char* what() const override {
    return box.is_bulk ? "bulk copy" : mask ? "TMA multicast" : "TMA load";
  }
  uint32_t multicast_mask() const override { return mask; }
  uint32_t box_rows() const override { return box.is_bulk ? 0 : box.rows(); }
};

/// One TMA store, until it has read shared memory.
struct TmaStoreRead : PendingOperation {
  TmaBox box;
  BulkReduction reduction = BulkReduction::none;
  ElementType element = ElementType::f32;  ///< of a reduction
  uint64_t group = 0;                      ///< of the issuer, counted from 0
  AsyncOperation race_operation;

  void land(Cluster&) override;
  const Block* touched_block() const override;
  bool lands_last() const override { return true; }
};

/// The rest of its life.
struct TmaStoreWrite : PendingOperation {
  TmaBox box;
  BulkReduction reduction = BulkReduction::none;
  ElementType element = ElementType::f32;
  uint64_t group = 0;
  std::vector<std::byte> data;  ///< row after row, not swizzled

  void land(Cluster&) override;
  const Block* touched_block() const override { return nullptr; }
  bool lands_last() const override { return true; }
};

/// The TMA stores that one thread closed with one commit, or will close with the next.
struct TmaStoreGroup {
  unsigned reading = 0, writing = 0;   ///< stores that have not done that yet
  double read_at = 0, written_at = 0;  ///< virtual time
  Location where;                      ///< of its last store,
  int row = -1, column = -1;           ///< and where its box begins, of a matrix
  Location committed_at;               ///< where it is closed,
  uint64_t waits_before_commit = 0;    ///< and how often the thread had waited for stores by then
  std::vector<AsyncOperation> race_operations;
};

/// The box that a thread wants to copy. Throws for a map that nobody encoded, and for a place in shared
/// memory where the box cannot lie. `what` is "TMA load" or "TMA store".
TmaBox make_box(Thread&, const void* map, const void* shared, const int* coordinates, unsigned dimensions,
                const char* what, Location where);
/// The same of bytes that follow each other.
TmaBox make_bulk_box(Thread&, const void* global, const void* shared, uint32_t bytes, Location where);

/// Counts the box as one operation. A reduction is atomic.
void count_box(Thread&, const TmaBox&, bool load, Location where, bool is_atomic = false);
/// Counts what a multicast writes to the shared memory of `blocks` further blocks.
void count_copies_of_box(Cluster&, const TmaBox&, unsigned blocks);

/// Throws for TMA stores that the exiting thread has left unfinished.
void check_stores_at_exit(Thread&);

}  // namespace cpu_device
