/// @file
/// What a profiler would show for loads and stores: 32-byte sectors of global memory after coalescing, and
/// passes through the banks of shared memory.
///
/// Lanes run one after the other here, so the access of a warp is put together again: the k-th execution of
/// one instruction by each lane, counted since the warp's last convergence point, is one access of the warp.
/// It is counted at the next convergence point (any barrier or warp collective of that warp, or its exit).
/// Of a long stretch without convergence the first kExaminedExecutions executions of each instruction are
/// looked at (fewer if kWaitingExecutions are waiting already); the rest are assumed to look like them, so
/// memory stays bounded.
///
/// The limits of the model: lanes that execute an instruction a different number of times in a divergent loop
/// are matched by count, not by iteration; the compiler of the host merges, splits or keeps loads in
/// registers as it likes, so a figure belongs to this build; caches are not modelled.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cpu_device/cpu_device.hpp"

namespace cpu_device {

/// Bounds on what waits for convergence: for each instruction of a warp, and in all.
constexpr unsigned kExaminedExecutions = 256;
constexpr unsigned kWaitingExecutions = 8192;

/// Figures of accesses, named as in Counters.
struct AccessTotals {
  uint64_t global_bytes_read = 0, global_bytes_written = 0;
  uint64_t global_read_sectors = 0, global_write_sectors = 0;
  uint64_t shared_bytes_read = 0, shared_bytes_written = 0;
  uint64_t shared_wavefronts = 0, bank_conflicts = 0;
  uint64_t cluster_bytes = 0;

  AccessTotals& operator+=(const AccessTotals& other);
};

/// Adds `exact` to the counters, and `sampled` scaled by blocks / sampled_blocks.
void add_to(Counters& counters, const AccessTotals& exact, const AccessTotals& sampled, uint64_t blocks,
            uint64_t sampled_blocks);

/// Plain accesses of at most this many clusters of a launch are counted; the rest is scaled.
constexpr uint64_t kSampledClusters = 32;
/// True if plain accesses of this cluster are to be counted: all of a small launch; else one cluster at a
/// pseudo-random (but fixed) place of each of kSampledClusters equal parts of the grid, so that edge blocks
/// are about as frequent in the sample as they are in the grid.
bool is_sampled(uint64_t cluster, uint64_t clusters);

enum class Space : uint8_t { global, shared };

/// The access of one lane; 0 bytes where the lane takes no part. `address` is a byte address; of shared
/// memory the offset into the block's own, which counts as aligned to 128 bytes.
struct LaneAccess {
  uint64_t address = 0;
  uint32_t bytes = 0;
};

/// 32-byte sectors that the lanes touch together.
unsigned count_sectors(const LaneAccess* lanes, unsigned count);

/// Passes through the banks (32 banks of 4 bytes) that one access of a warp takes, and the fewest that its
/// bytes could take. Lanes are served 128 bytes at a time: all 32 with up to 4 bytes each, half warps with 8,
/// quarter warps with 16. Lanes that read the same 4-byte word are served together.
struct Wavefronts {
  unsigned taken = 0, ideal = 0;
};
/// Of the accesses of one warp.
Wavefronts count_wavefronts(const LaneAccess* lanes, unsigned count);

/// Counts the accesses of one cluster after the other, on one OS thread.
class AccessCounter {
 public:
  AccessCounter();
  ~AccessCounter();
  AccessCounter(const AccessCounter&) = delete;
  AccessCounter& operator=(const AccessCounter&) = delete;

  /// Starts a cluster of `warps` warps, numbered block * warps per block + warp in the block. Totals go on.
  void begin(unsigned warps);

  /// One lane's plain access; `instruction` identifies the instruction. Reached from the hooks.
  void lane_access(unsigned warp, unsigned lane, const void* instruction, Space space, uint64_t address,
                   uint32_t bytes, bool write);
  /// That access was one to the shared memory of another block. Sampled as it is.
  void lane_access_of_other_block(uint32_t bytes) { sampled_cluster_bytes_ += bytes; }
  /// A convergence point of a warp. Call it once for the warp, when all of its lanes have arrived (they run
  /// one after the other: the first one arrives before the others did anything), and when the last one exits.
  void converge_warp(unsigned warp);
  /// The same for all warps: when the cluster ends.
  void converge_all();

  /// The access of a warp that the engine sees whole: ldmatrix (call it once for each 8x8 matrix, with 8
  /// lanes of 16 bytes), a cp.async instruction. Counted exactly, never sampled.
  void warp_access(Space space, const LaneAccess* lanes, unsigned count, bool write);
  /// A contiguous piece that a hardware engine moves (a row of a TMA box or of a wgmma operand): no
  /// conflicts; counted exactly.
  void bulk_access(Space space, uint64_t address, uint64_t bytes, bool write);

  /// `bytes` that st.async writes to shared memory. The passes that they take there are not modelled.
  void async_store(uint64_t bytes) { exact_.shared_bytes_written += bytes; }
  /// `bytes` that a multicast or st.async brings to another block.
  void cluster_access(uint64_t bytes) { exact_.cluster_bytes += bytes; }

  const AccessTotals& exact() const { return exact_; }
  /// Plain accesses of all clusters so far, up to their last convergence points.
  AccessTotals sampled() const;

 private:
  struct Instruction;
  struct Execution;
  struct Stream;
  struct Warp;

  uint32_t find_instruction(uint64_t key);
  void grow_table();
  void piece_access(Warp& warp, unsigned lane, uint64_t key, uint64_t address, uint32_t bytes);
  void examine(Instruction& instruction, const Execution& execution);

  AccessTotals exact_;
  uint64_t sampled_cluster_bytes_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<uint32_t> table_;        ///< hash table of instructions_: index + 1, or 0 where free
  std::vector<Execution> executions_;  ///< those that wait for their warp to converge, and unused ones
  std::vector<uint32_t> unused_executions_;
  std::vector<Warp> warps_;
};

}  // namespace cpu_device
