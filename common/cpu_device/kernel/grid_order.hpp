/// @file
/// Happens-before between clusters of one launch: what blocks hand over to each other in global memory must
/// be released before an atomic operation and acquired after it, at the scope of the device.
///
/// Kept for each byte: the last write. A read or a write by another cluster must be ordered after it. (That
/// a write comes after the reads of other clusters is not checked.) Plain loads and stores count, and copies
/// that the hardware makes, as if they ended where they are issued. Clusters run one at a time, so nothing
/// here needs a lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

struct Thread;

class GridOrder {
 public:
  /// In the source: of a plain load or store the hook's return address, of a copy its call.
  struct Place {
    const void* return_address = nullptr;
    Location call;
  };

  /// The clusters after this call are others than those before.
  void begin_cluster() {
    ++cluster_;
    fenced_.clear();
    pending_.clear();
    acquired_.clear();
  }

  /// `__threadfence`: atomic operations of the thread release what it knows now, and what those before have
  /// seen is acquired.
  void fence(RaceChecker&, unsigned thread);
  /// Around an atomic operation at the scope of the device.
  void before_atomic(RaceChecker&, unsigned thread, const void* object, bool releases);
  void after_atomic(RaceChecker&, unsigned thread, const void* object, bool acquires);

  /// @return what is wrong with a load or store of global memory; empty if nothing.
  std::string access(const RaceChecker&, unsigned thread, const ThreadIds& ids, const std::byte* address,
                     size_t bytes, bool write, const Place& place);

 private:
  /// What somebody of a cluster knew of its threads.
  struct Released {
    uint64_t cluster = 0;
    std::vector<uint32_t> epochs;
  };
  using Knowledge = std::vector<Released>;
  struct Acquired {
    unsigned thread = 0;
    uint32_t epoch = 0;
    Knowledge what;
  };
  struct Write {
    uint64_t cluster = 0;
    unsigned thread = 0;
    uint32_t epoch = 0;
    Place place;
    Uint3 block;
    unsigned rank = 0;  ///< in the block
  };

  Knowledge known_to(RaceChecker&, unsigned thread);
  static std::string describe(const Write&);
  bool is_ordered(const RaceChecker&, unsigned thread, const Write&) const;

  uint64_t cluster_ = 0;
  std::map<unsigned, Knowledge> fenced_, pending_;  ///< by thread of the cluster that runs
  std::vector<Acquired> acquired_;                  ///< by its threads
  std::map<const void*, Knowledge> released_;       ///< by atomic object
  std::unordered_map<const std::byte*, Write> writes_;
  const std::byte* first_written_ = nullptr;  ///< all writes are between these: most loads are elsewhere
  const std::byte* written_end_ = nullptr;
};

/// For a copy of `thread`, where clusters hand over to each other. Records the failure.
void check_copy_in_grid(Thread& thread, const void* address, size_t bytes, bool write, Location where);

}  // namespace cpu_device
