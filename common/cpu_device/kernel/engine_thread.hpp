/// @file
/// Threads, and the warps that they form: what each knows, holds and waits for.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_aligned.hpp"
#include "common/cpu_device/kernel/engine_async_copies.hpp"
#include "common/cpu_device/kernel/engine_tma.hpp"
#include "common/cpu_device/kernel/engine_waits.hpp"
#include "common/cpu_device/kernel/engine_wgmma.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {

struct Mbarrier;
struct Warp;

struct Thread {
  explicit Thread(Cluster& cluster);

  ThreadIds ids;
  Cluster& cluster;
  Block* block = nullptr;
  Warp* warp = nullptr;
  unsigned number = 0;  ///< in the cluster
  unsigned lane = 0;
  bool started = false, done = false;
  bool synchronised = true;  ///< since its last cp.async
  Wait wait;
  Location last_call;  ///< into the engine
  ObservedThread observed;

  std::unique_ptr<CopyGroup> open_copies;  ///< issued, not yet committed
  uint64_t committed_copy_groups = 0, landed_copy_groups = 0, waited_copy_groups = 0;
  uint64_t last_copy_group = 0;               ///< the last one that is not empty
  uint64_t copy_groups_at_wait = 0;           ///< committed when it waited last; 0: it never did
  unsigned copy_groups_left = 0;              ///< by that wait
  Location last_copy_wait_at;                 ///< that wait,
  Location uncommitted_wait_at;               ///< that wait, if copies were in no group yet
  uint32_t last_copy_wait_epoch = 0;          ///< and the thread's epoch behind it, where races are checked
  std::deque<LandedGroup> landed_groups;      ///< not yet waited for
  const CopyGroup* landing_copies = nullptr;  ///< its group that lands at the moment
  unsigned copies_since_convergence = 0;
  Location last_copy_at, last_wgmma_at;  ///< of the last group of copies, of the last product

  /// The last one is open; those in front that were waited for are gone.
  std::deque<TmaStoreGroup> store_groups;
  uint64_t forgotten_store_groups = 0;   ///< that are gone
  uint64_t read_store_groups_known = 0;  ///< groups before this number were waited for, at least to be read
  uint64_t written_store_groups_known = 0;  ///< and these until they were written

  /// The mbarrier that it waited for last, and the phase that this was in when the wait ended.
  struct Seen {
    const Mbarrier* barrier = nullptr;
    uint64_t phase = 0;
    uint32_t epoch = 0;  ///< of the thread, where races are checked
    Location where;
    Location repeats;  ///< its wait there before, if that was for the same phase; where races are checked
  };
  Seen last_seen;
  static constexpr size_t kSeenKept = 32;
  std::deque<Seen> seen_before;  ///< the last ones, for what the thread issued before others; see seen_in
  /// Its place in a ring of slots, as its waits at the barriers of one end of a pipeline tell.
  struct RingPlace {
    uint32_t first_barrier = 0;  ///< the offset of slot 0's
    int slots = 0;
    int first_slot = 0, slot = 0;  ///< of its first and its last wait
    uint32_t first_parity = 0, parity = 0;
    bool has_jumped = false;  ///< to another place than the next and the first
    /// The first wait that began again at the place of the first one, and the slot of the wait before.
    const Mbarrier* restarted = nullptr;
    Location restarted_at;
    int slot_before = 0;
    bool is_wrong = false;  ///< such a wait, or a later one, was for a phase that had been used up
  };
  std::vector<RingPlace> places_in_rings;
  /// A TMA load that it has issued: where it writes, and the barrier at which it counts.
  struct CountedLoad {
    const Mbarrier* barrier = nullptr;
    uint32_t offset = 0, bytes = 0;
    uint32_t mask = 0;  ///< of blocks; 0: no multicast
    Location where;
    uint32_t rows = 0;  ///< of its box; 0 of other copies
  };
  static constexpr size_t kLoadsKept = 64;
  std::deque<CountedLoad> last_loads;
  /// What a TMA store that it has issued reads. Where races are checked.
  struct StoredBox {
    uint32_t offset = 0, bytes = 0;
  };
  std::deque<StoredBox> last_stores;
  /// A __syncthreads or a fence.proxy.async: where, and in which epoch it began. Where races are checked.
  struct Order {
    Location where;
    uint32_t epoch = 0;
  };
  std::vector<Order> block_barriers;
  static constexpr size_t kFencesKept = 32;
  std::deque<Order> proxy_fences;  ///< the last ones
  /// A wait for groups of cp.async; where races are checked.
  struct CopyWait {
    Location where;
    uint32_t epoch = 0;   ///< behind it
    uint64_t groups = 0;  ///< committed by then
    unsigned left = 0;    ///< of these
  };
  static constexpr size_t kCopyWaitsKept = 8;
  std::deque<CopyWait> copy_waits;  ///< the last ones
  Order last_store_wait;            ///< for TMA stores
  unsigned store_groups_left = 0;   ///< by that wait
  uint64_t store_waits = 0;
  Location last_store_commit;
  uint64_t mbarrier_waits = 0;  ///< that have ended

  uint64_t wgmma_issued = 0, wgmma_committed = 0, wgmma_committed_groups = 0, wgmma_fences = 0;
  RegistersAtFence registers_at_fence;
  std::deque<Accumulator> accumulators;           ///< a deque, because operations hold pointers to them
  std::deque<Accumulator*> wgmma_not_waited_for;  ///< one for each operation
  std::deque<RegistersOfA> wgmma_registers_of_a;  ///< likewise
  uint64_t wgmma_waited_for = 0;
  /// Where it arrived behind its last wgmma, without a wait for any in between.
  struct ArrivalInFlight {
    const Mbarrier* barrier = nullptr;
    Location where;
  };
  ArrivalInFlight arrival_in_flight;
  bool has_waited_since_wgmma = false;
  IdleWait idle_wgmma_wait;                  ///< the last one since a wait ended products
  Order last_wgmma_wait, wgmma_wait_before;  ///< of which it may not have come back, and the one before
  unsigned wgmma_groups_left = 0, wgmma_groups_left_before = 0;  ///< by these

  /// Its barrier.cluster.arrive, until the wait.
  struct ClusterArrival {
    bool is_open = false;
    uint64_t phase = 0;
  };
  ClusterArrival cluster_arrival;

  uint64_t aligned_steps = 0;        ///< .aligned instructions that it has executed
  const void* body_frame = nullptr;  ///< on its stack: frames above it are not the kernel's

  /// Waits and arrivals at mbarriers since it was resumed, none of which made it wait; and at one of these
  /// places, from a moment on.
  uint32_t passes = 0, passes_there = 0;
  Location passes_at;
  double passes_since = 0;  ///< processor time, in seconds

  /// It has been suspended in a hook of a plain load or store, which no exception may leave.
  bool is_in_hook = false;
  std::string loop_of_loads;  ///< what it does there, in the words of a report

  const void* looks_at = nullptr;  ///< by atomic operations that change nothing
  unsigned looks = 0;              ///< in a row
  uint64_t slots[4] = {};          ///< operands and results of warp collectives
  Fiber fiber;                     ///< last: its function sees a complete thread
};

struct Warp;
/// A warp-wide operation that some lanes have reached.
struct Collective {
  const char* what = "";
  uint32_t mask = 0, arrived = 0;
  bool aligned = false;
  Location where;
  /// What the last lane executes for all; `of` lies on the stack of the first, which waits.
  void (*operation)(const void* of, Warp&, uint32_t lanes) = nullptr;
  const void* of = nullptr;
};

/// Lanes that have come to one __activemask(), and wait whether others do.
struct Gathering {
  Location where;
  uint32_t mask = 0;
};

struct Warp {
  unsigned index = 0;   ///< in the block
  unsigned number = 0;  ///< in the cluster
  Block* block = nullptr;
  Thread* lanes[kWarpLanes] = {};
  uint32_t present = 0;  ///< lanes that exist
  uint32_t live = 0;     ///< lanes that have not exited
  std::vector<Collective> collectives;
  std::vector<Gathering> gatherings;
  std::deque<AlignedStep> aligned_steps;  ///< that some lanes have not executed yet
  uint64_t forgotten_aligned_steps = 0;   ///< that all have
  /// The k-th cp.async of each lane since the warp last converged: one instruction of the warp.
  std::vector<std::vector<Copy>> copy_instructions;

  unsigned registers = 0;         ///< that each of its threads may use; see find_registers
  unsigned wanted_registers = 0;  ///< more than that while a setmaxnreg.inc waits
  unsigned register_changes = 0;  ///< how many setmaxnreg it has executed
};

/// The thread that runs now; null outside of kernels.
extern constinit thread_local Thread* current_thread;

/// The running thread. @throws std::logic_error outside of a kernel.
Thread& this_thread(Location where);
/// An exit may complete what the remaining lanes wait for.
void complete_collectives_without(Cluster&, Thread& exited);

}  // namespace cpu_device
