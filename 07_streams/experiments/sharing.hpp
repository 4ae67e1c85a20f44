/// @file
/// What experiment `sharing` makes of the notes that blocks leave, for the experiment and its tests.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lesson07 {

/// Of one block.
struct BlockRecord {
  uint64_t begin_ns, end_ns;  ///< by the GPU's own timer
  uint32_t multiprocessor;
};

/// Where blocks of two kernels ran on one multiprocessor at the same time.
struct Shared {
  int multiprocessors = 0;
  /// A block of each kernel, from the multiprocessor on which two were together for longest.
  std::optional<std::pair<BlockRecord, BlockRecord>> longest;
};

/// The first half of the records is one kernel's, the second half the other's.
Shared shared_multiprocessors(const std::vector<BlockRecord>& records);

/// The most blocks that ran at one time, on any multiprocessor.
int most_at_once(const std::vector<BlockRecord>& records);

}  // namespace lesson07
