/// @file
/// What a block sends to another block of its cluster, and whom it may send to.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_async.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

constexpr uint32_t kAsyncStoreBytes = 16;

/// One st.async.
struct AsyncStore : CountedCopy {
  uint32_t offset = 0;  ///< in the shared memory of the target
  std::byte value[kAsyncStoreBytes];

  void land(Cluster&) override;
  uint32_t bytes() const override { return kAsyncStoreBytes; }
  const char* arrival() const override { return "bytes of a store_async"; }
  const char* what() const override { return "store_async"; }
  const char* too_late_because() const override {
    return ", or the sender is ahead and did not wait until the slot was empty";
  }
  bool lands_after_arrivals() const override { return true; }
  bool needs_cluster_scope() const override;
};

/// An arrival at the barrier of another block.
struct RemoteArrival : PendingOperation {
  Mbarrier* barrier = nullptr;
  ArrivalOrder order = ArrivalOrder::relaxed;
  bool wgmma_in_flight = false;  ///< that the issuer has not waited for
  const char* name = "";
  double lands_at = 0;            ///< virtual time
  uint32_t epoch = 0;             ///< of the issuer, for races
  SyncObject released;            ///< what the issuer made known; nothing if it arrived relaxed
  SyncObject operations;          ///< of that, the asynchronous operations, which any arrival makes known
  AsyncOperation race_operation;  ///< the arrival itself, which touches the barrier

  void land(Cluster&) override;
  const Block* touched_block() const override;
  const char* what() const override { return name; }
  bool is_arrival() const override { return true; }
};

/// Block `rank` of the thread's cluster. @throws if there is none, or if it has left.
Block& find_block(Thread&, unsigned rank, const char* operation, Location where);
/// The thread's block has told `other` something, so `other` may know that its memory is no longer used.
void forget_mapping(const Thread&, Block& other);

}  // namespace cpu_device
