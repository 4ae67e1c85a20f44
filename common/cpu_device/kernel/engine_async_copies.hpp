/// @file
/// cp.async in flight, and the groups that a thread waits for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine_async.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

/// One cp.async.
struct Copy {
  std::byte* shared = nullptr;
  const std::byte* global = nullptr;
  uint32_t bytes = 0, source_bytes = 0;
  uint32_t race_operation = 0;  ///< index in CopyGroup::race_operations
  unsigned lane = 0;            ///< that issued it
  uint32_t epoch = 0;           ///< of its thread then, where races are checked
  Location where;
  bool landed = false;
};

/// The cp.async that one thread closed with one commit, or attached to one mbarrier.
struct CopyGroup : PendingOperation {
  std::vector<Copy> copies;
  uint64_t number = 0;          ///< counts from 1; 0 if it completes on `barrier`
  Mbarrier* barrier = nullptr;  ///< gets an arrival when the group has landed
  double lands_at = 0;          ///< virtual time
  Location committed_at;        ///< by a commit,
  uint32_t commit_epoch = 0;    ///< and the thread's epoch then, where races are checked
  std::vector<AsyncOperation> race_operations;

  void land(Cluster&) override;
  const Block* touched_block() const override;
  std::string abandoned() const override;
  void show_early_readers(Cluster&) override;
};

/// What a thread remembers of a group that it may still wait for.
struct LandedGroup {
  uint64_t number = 0;
  double landed_at = 0;
  std::vector<AsyncOperation> race_operations;
  std::vector<Copy> copies;  ///< and what CopyGroup says of them
  Location committed_at;
  uint32_t commit_epoch = 0;
};

}  // namespace cpu_device
