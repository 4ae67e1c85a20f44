/// @file
/// The products of a warpgroup in flight, and the registers that they own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/kernel/engine_registers.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

struct Mbarrier;
struct Thread;

/// A wgmma.wait_group that has ended no product, since it leaves this many groups in flight.
struct IdleWait {
  Location where;
  unsigned groups_left = 0;
  uint64_t issued = 0;  ///< products, by then
};

/// The accumulator registers of one thread, known by their address. While operations on them are in flight
/// the array holds NaN and `value` the truth.
struct Accumulator {
  std::byte* first = nullptr;         ///< of registers that follow each other,
  std::vector<std::byte*> scattered;  ///< or where each lies
  int count = 0;
  unsigned in_flight = 0;
  bool ever_delivered = false;
  uint64_t fences_at_delivery = 0;
  bool kept = true;    ///< since its delivery the compiler has been told that the registers changed
  Location issued_at;  ///< the last operation
  Location delivered_at;
  uint64_t delivered_with = 0;  ///< the number of operations that its wait covered; 0: none yet
  bool asks_for_keep = true;    ///< see keep_in_registers
  IdleWait idle_wait;           ///< the last one between its last operation and its delivery
  uint32_t value[128];          ///< floats, or pairs of fp16

  std::byte* at(int i) const {
    const auto index = static_cast<size_t>(i);
    return scattered.empty() ? first + sizeof(uint32_t) * index : scattered[index];
  }
};

/// What the variables of a thread held when it executed its last wgmma.fence: its stack, from the frames of
/// the kernel up. Which of them are accumulators is known only when a wgmma takes them.
class RegistersAtFence {
 public:
  /// Copies the part of the thread's stack from `begin` to its end.
  void remember(const std::byte* begin, const std::byte* end, Location where);
  /// The bytes of a variable; null if it is not on the stack, or did not exist yet.
  const std::byte* find(const void* variable, size_t bytes) const;
  Location where() const { return where_; }

 private:
  const std::byte* begin_ = nullptr;
  std::vector<std::byte> held_;
  Location where_;
};

/// One wgmma.mma_async of a warpgroup.
struct WgmmaOperation {
  Wgmma what;
  std::vector<uint32_t>
      a_registers;  ///< of all threads, where A comes from there: what they held at the issue
  std::vector<const uint32_t*> a_variables;  ///< of all threads, where these are known
  unsigned issued_by = 0;                    ///< threads of the warpgroup that have issued it
  Location where;
  Accumulator* accumulators[kWarpgroupThreads] = {};
  AsyncOperation race_operation;
  double issued_at = 0;  ///< virtual time of the last of those threads
};

/// Registers of A that the tensor cores may still read, and what they held at the issue.
struct RegistersOfA {
  const uint32_t* variables = nullptr;  ///< null where they are not known
  uint32_t held[4] = {};
  Location where;  ///< of the product
};

/// A group of operations, closed by a commit of all 128 threads.
struct WgmmaGroup {
  uint64_t end = 0;  ///< operations before this number belong to it or to an earlier group
  unsigned commits = 0;
  AsyncOperation race_operation;  ///< of its last operation; earlier ones complete before
  double done_at = 0;             ///< virtual time
};

/// wgmma is an operation of four warps: it can complete only after all 128 threads issued it, and a
/// completion that one warp has seen covers the reads of all four.
struct Warpgroup {
  std::deque<WgmmaOperation> operations;  ///< not executed yet, in program order
  uint64_t executed = 0;                  ///< how many took effect; the number of operations.front()
  std::vector<WgmmaGroup> groups;
  uint64_t committed_groups = 0;  ///< by all threads
  std::vector<Thread*> waiting;
  std::vector<RegisterChange> register_changes;
  /// What an operand of an operation reads in shared memory, from where its descriptor begins.
  struct OperandBytes {
    uint32_t start, begin, end;  ///< offsets
    uint32_t epoch;              ///< in which the operation was issued
    uint32_t leading, stride;    ///< of the descriptor
    bool operator==(const OperandBytes&) const = default;
  };
  std::vector<OperandBytes> operands_read;  ///< each once; where races are checked
  // Of the operation that was issued by all threads last:
  AsyncOperation last_race_operation;
  double last_done_at = 0;
};

/// Throws for sums that the exiting thread has waited for without telling the compiler.
void check_accumulators_at_exit(Thread&);
/// The thread arrives at a barrier: reports say so if products are in flight that it has not waited for.
void note_arrival_in_flight(Thread&, const Mbarrier&, Location where);

}  // namespace cpu_device
