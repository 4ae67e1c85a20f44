/// @file
/// Operations in flight: what they have in common, whoever issues them.
#pragma once
#include <cstdint>
#include <string>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

class Cluster;
struct Block;
struct Mbarrier;
struct Thread;

/// An operation in flight. Who knows how to land derives from it.
struct PendingOperation {
  Thread* issuer = nullptr;
  Location where;
  /// Operations with the same non-null queue land in the order of issue.
  const void* queue = nullptr;

  virtual ~PendingOperation() = default;
  virtual void land(Cluster&) = 0;
  /// The block whose shared memory or barrier it touches when it lands; null if it touches none.
  virtual const Block* touched_block() const = 0;
  /// How reports call it.
  virtual const char* what() const { return "copy"; }
  /// What a block must do before it leaves that another one sends it to.
  virtual std::string missing() const;
  /// What is wrong where its own block exits before it has landed.
  virtual std::string abandoned() const {
    return "the block exits while this copy from or to its shared memory is in flight";
  }
  /// Where its own block exits before it has landed: who has read what it writes, is the mistake.
  virtual void show_early_readers(Cluster&) {}
  /// Is it an arrival at the barrier of another block? A cluster.sync of the issuer waits for it.
  virtual bool is_arrival() const { return false; }
  /// Where landing is late, does it let arrivals go first, those too that were issued later? Who takes such
  /// an arrival for a sign that it has landed is wrong.
  virtual bool lands_after_arrivals() const { return false; }
  /// Where landing is late, does it let all others go first? Who stores from a tile must wait for that store,
  /// and a load may not help.
  virtual bool lands_last() const { return false; }
};

/// A copy to the shared memory of a block that counts its bytes at a barrier of that block.
struct CountedCopy : PendingOperation {
  Block* target = nullptr;
  Mbarrier* barrier = nullptr;
  uint64_t phase = 0;   ///< that the barrier was in when the copy was issued
  double lands_at = 0;  ///< virtual time
  AsyncOperation race_operation;

  virtual uint32_t bytes() const = 0;
  virtual const char* arrival() const = 0;  ///< how reports call its completion
  virtual uint32_t multicast_mask() const { return 0; }
  virtual uint32_t box_rows() const { return 0; }
  /// Do only waits of the cluster's scope see the bytes?
  virtual bool needs_cluster_scope() const { return false; }
  const Block* touched_block() const override { return target; }
  std::string missing() const override;
  std::string abandoned() const override;
  /// Records a failure if the phase in which it was issued has ended.
  bool is_too_late(Cluster&) const;
  /// What else may be wrong where the phase has ended before the bytes came.
  virtual const char* too_late_because() const { return ""; }
};

}  // namespace cpu_device
