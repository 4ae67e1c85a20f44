/// @file
/// What the engine knows about a running cluster: threads, warps, warpgroups, blocks, and what is in flight.
/// Private to the engine.
///
/// A cluster runs whole on one OS thread, so nothing here needs a lock. One Cluster object runs many clusters
/// of a launch, one after the other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "common/cpu_device/base/fiber.hpp"
#include "common/cpu_device/base/random.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/grid_order.hpp"
#include "common/cpu_device/kernel/tensor_map.hpp"
#include "common/cpu_device/observe/clock.hpp"
#include "common/cpu_device/observe/counters.hpp"
#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

class Cluster;
struct Block;
struct Thread;
struct Warp;
struct Mbarrier;

constexpr unsigned kWarpLanes = 32;
constexpr unsigned kMaxWarps = 32;  ///< of a block
constexpr unsigned kWarpgroupThreads = 128;
constexpr unsigned kWarpgroupWarps = 4;
constexpr unsigned kNamedBarriers = 16;
/// Address of byte 0 of a block's dynamic shared memory in its shared window; Hopper reserves the first 1024.
constexpr uint32_t kSharedWindowBase = 1024;

/// Leaves a fiber whose kernel has failed. Never seen outside the engine and the kernel's destructors.
struct Abandoned {};

// --- waiting --------------------------------------------------------------------------------------------

enum class WaitKind : uint8_t { none, block_barrier, warp, mbarrier, copies, stores, wgmma, registers, poll };

/// Why a thread does not run, in the words of the deadlock report.
struct Wait {
  WaitKind kind = WaitKind::none;
  const void* object = nullptr;  ///< Mbarrier or NamedBarrier
  uint64_t argument = 0;         ///< parity, group
  const char* what = "";
  Location where;
};

// --- asynchronous operations ----------------------------------------------------------------------------

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
  virtual std::string missing() const { return "a cluster_sync is missing at the end"; }
  /// Does a cluster.sync of the issuer wait for it?
  virtual bool lands_before_cluster_sync() const { return false; }
  /// Where landing is late, does it let all others go first? Who stores from a tile must wait for that store,
  /// and a load may not help.
  virtual bool lands_last() const { return false; }
};

/// One cp.async.
struct Copy {
  std::byte* shared = nullptr;
  const std::byte* global = nullptr;
  uint32_t bytes = 0, source_bytes = 0;
  uint32_t race_operation = 0;  ///< index in CopyGroup::race_operations
  unsigned lane = 0;            ///< that issued it
  Location where;
  bool landed = false;
};

/// The cp.async that one thread closed with one commit, or attached to one mbarrier.
struct CopyGroup : PendingOperation {
  std::vector<Copy> copies;
  uint64_t number = 0;          ///< counts from 1; 0 if it completes on `barrier`
  Mbarrier* barrier = nullptr;  ///< gets an arrival when the group has landed
  double lands_at = 0;          ///< virtual time
  std::vector<AsyncOperation> race_operations;

  void land(Cluster&) override;
  const Block* touched_block() const override;
};

/// What a thread remembers of a group that it may still wait for.
struct LandedGroup {
  uint64_t number = 0;
  double landed_at = 0;
  std::vector<AsyncOperation> race_operations;
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
  const Block* touched_block() const override { return target; }
  std::string missing() const override;
};

/// One TMA load, or what one block receives of a multicast.
struct TmaLoad : CountedCopy {
  TmaBox box;
  bool is_multicast = false;

  void land(Cluster&) override;
  uint32_t bytes() const override { return box.bytes(); }
  const char* arrival() const override {
    return is_multicast ? "bytes of a TMA multicast" : "bytes of a TMA load";
  }
  const char* what() const override { return is_multicast ? "TMA multicast" : "TMA load"; }
};

constexpr uint32_t kAsyncStoreBytes = 16;

/// One st.async.
struct AsyncStore : CountedCopy {
  uint32_t offset = 0;  ///< in the shared memory of the target
  std::byte value[kAsyncStoreBytes];

  void land(Cluster&) override;
  uint32_t bytes() const override { return kAsyncStoreBytes; }
  const char* arrival() const override { return "bytes of a store_async"; }
  const char* what() const override { return "store_async"; }
};

/// An arrival at the barrier of another block.
struct RemoteArrival : PendingOperation {
  Mbarrier* barrier = nullptr;
  ArrivalOrder order = ArrivalOrder::relaxed;
  const char* name = "";
  double lands_at = 0;            ///< virtual time
  SyncObject released;            ///< what the issuer made known; nothing if it arrived relaxed
  SyncObject operations;          ///< of that, the asynchronous operations, which any arrival makes known
  AsyncOperation race_operation;  ///< the arrival itself, which touches the barrier

  void land(Cluster&) override;
  const Block* touched_block() const override;
  const char* what() const override { return name; }
  bool lands_before_cluster_sync() const override { return true; }
};

/// One TMA store, until it has read shared memory.
struct TmaStoreRead : PendingOperation {
  TmaBox box;
  uint64_t group = 0;  ///< of the issuer, counted from 0
  AsyncOperation race_operation;

  void land(Cluster&) override;
  const Block* touched_block() const override;
  bool lands_last() const override { return true; }
};

/// The rest of its life.
struct TmaStoreWrite : PendingOperation {
  TmaBox box;
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
  Location where;                      ///< of its last store
  std::vector<AsyncOperation> race_operations;
};

// --- wgmma ----------------------------------------------------------------------------------------------

/// The accumulator registers of one thread, known by their address. While operations on them are in flight
/// the array holds NaN and `value` the truth.
struct Accumulator {
  float* registers = nullptr;
  int count = 0;
  unsigned in_flight = 0;
  bool ever_delivered = false;
  uint64_t fences_at_delivery = 0;
  float value[128];
};

/// One wgmma.mma_async of a warpgroup.
struct WgmmaOperation {
  uint64_t a = 0, b = 0;
  int columns = 0;
  bool accumulate = false, b_row_major = false;
  unsigned issued_by = 0;  ///< threads of the warpgroup that have issued it
  Location where;
  Accumulator* accumulators[kWarpgroupThreads] = {};
  AsyncOperation race_operation;
};

/// A group of operations, closed by a commit of all 128 threads.
struct WgmmaGroup {
  uint64_t end = 0;  ///< operations before this number belong to it or to an earlier group
  unsigned commits = 0;
  AsyncOperation race_operation;  ///< of its last operation; earlier ones complete before
  double done_at = 0;             ///< virtual time
};

/// One setmaxnreg of a warpgroup.
struct RegisterChange {
  unsigned count = 0;
  Location where;
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
  // Of the operation that was issued by all threads last:
  AsyncOperation last_race_operation;
  double last_done_at = 0;
};

// --- threads and warps ----------------------------------------------------------------------------------

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
  ObservedThread observed;

  std::unique_ptr<CopyGroup> open_copies;  ///< issued, not yet committed
  uint64_t committed_copy_groups = 0, landed_copy_groups = 0, waited_copy_groups = 0;
  uint64_t last_copy_group = 0;           ///< the last one that is not empty
  std::deque<LandedGroup> landed_groups;  ///< not yet waited for
  unsigned copies_since_convergence = 0;

  /// The last one is open; those in front that were waited for are gone.
  std::deque<TmaStoreGroup> store_groups;
  uint64_t forgotten_store_groups = 0;   ///< that are gone
  uint64_t read_store_groups_known = 0;  ///< groups before this number were waited for, at least to be read

  uint64_t wgmma_issued = 0, wgmma_committed_groups = 0, wgmma_fences = 0;
  std::deque<Accumulator> accumulators;           ///< a deque, because operations hold pointers to them
  std::deque<Accumulator*> wgmma_not_waited_for;  ///< one for each operation
  uint64_t wgmma_waited_for = 0;

  uint64_t slots[4] = {};  ///< operands and results of warp collectives
  Fiber fiber;             ///< last: its function sees a complete thread
};

/// A warp-wide operation that some lanes have reached.
struct Collective {
  const char* what = "";
  uint32_t mask = 0, arrived = 0;
  bool aligned = false;
  Location where;
  std::vector<Thread*> waiting;
};

struct Warp {
  unsigned index = 0;   ///< in the block
  unsigned number = 0;  ///< in the cluster
  Block* block = nullptr;
  Thread* lanes[kWarpLanes] = {};
  uint32_t present = 0;  ///< lanes that exist
  uint32_t live = 0;     ///< lanes that have not exited
  std::vector<Collective> collectives;
  /// The k-th cp.async of each lane since the warp last converged: one instruction of the warp.
  std::vector<std::vector<Copy>> copy_instructions;

  unsigned registers = 0;         ///< that each of its threads may use
  unsigned wanted_registers = 0;  ///< more than that while a setmaxnreg.inc waits
  unsigned register_changes = 0;  ///< how many setmaxnreg it has executed
};

// --- barriers -------------------------------------------------------------------------------------------

/// Barrier 0 is __syncthreads.
struct NamedBarrier {
  unsigned expected = 0;  ///< 0: all threads of the block that have not exited
  unsigned arrived = 0;
  Location where;  ///< of the first arrival
  std::vector<Thread*> arrivals;
  std::vector<Thread*> waiting;
  // Of a barrier of some warps: what those who arrive make known.
  SyncObject released;
  double latest_arrival = 0;  ///< virtual time
};

struct Mbarrier {
  Block* block = nullptr;
  uint32_t offset = 0;
  uint32_t expected = 0, pending = 0;
  int64_t missing_bytes = 0;
  uint64_t phase = 0;
  const char* name = nullptr;
  int name_index = -1;
  Location initialised_at;
  const Thread* initialised_by = nullptr;
  bool fenced = false;  ///< after its initialisation: the async proxy may use it
  std::vector<Thread*> waiting;
  uint32_t waiting_warps = 0;  ///< a bit for each that waits, or has waited, in this phase

  struct Arrival {
    const char* what;
    const Thread* thread;
    Location where;
  };
  std::vector<Arrival> arrivals, last_arrivals;  ///< of this phase and of the one before

  SyncObject released, completed;  ///< what arrivals of this phase, and of completed ones, make known
  SyncObject released_afar, completed_afar;  ///< by threads of other blocks, to waits of the cluster's scope
  double latest_arrival = 0, completed_at = 0;
};

// --- blocks ---------------------------------------------------------------------------------------------

/// Two views of a block's shared memory. Threads use the generic one; the async proxy sees a write of a
/// thread only after a fence. Exactly as large as the launch says, so that AddressSanitizer sees the end.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;

  /// Every bit pattern is a NaN.
  void poison();
  /// fence.proxy.async: what is in the generic view now is in the async view when it is read next.
  void fence();
  /// The async view, up to date with the fences. For those who read it: wgmma, TMA stores.
  const std::byte* read_async_view();
  /// A write through the async proxy, which threads see once they have waited for it.
  void write_both_views(size_t offset, const std::byte* data, size_t bytes);
  std::byte* generic() { return generic_; }
  size_t bytes() const { return bytes_; }
  bool contains(const void* pointer) const { return pointer >= generic_ && pointer < generic_ + bytes_; }

 private:
  void publish();

  size_t bytes_;
  std::byte* generic_ = nullptr;
  std::byte* async_ = nullptr;
  uint64_t fences_ = 0;         ///< since the last read
  uint64_t fences_before_ = 0;  ///< between the last two reads
  bool publish_due_ = false;
};

struct Block {
  explicit Block(size_t shared_bytes) : shared(shared_bytes) {}

  BlockIds ids;
  unsigned live = 0;
  SharedMemory shared;
  NamedBarrier barriers[kNamedBarriers];
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::vector<std::unique_ptr<Mbarrier>> mbarriers;

  /// Who has a pointer to this block's shared memory and has not met it since, by rank: see map_shared().
  struct Mapping {
    const Thread* by = nullptr;
    Location where;
  };
  std::vector<Mapping> mappings;

  unsigned free_registers = 0;  ///< given back by setmaxnreg.dec, counted per thread of one warp
  std::vector<Thread*> waiting_for_registers;
};

// --- cluster --------------------------------------------------------------------------------------------

/// Runs clusters of one launch on one OS thread.
class Cluster {
 public:
  /// @param grid_order null where nobody checks it
  Cluster(const KernelLaunch&, const std::function<void()>& thread_body, const Options&,
          bool note_global_accesses, GridOrder* grid_order);
  ~Cluster();
  Cluster(const Cluster&) = delete;

  /// Runs one cluster to its end or to its failure.
  void run(uint64_t index);
  /// The text of the failure; empty if there was none.
  const std::string& failure() const { return failure_; }

  const Counters& counters() const { return counters_; }
  const AccessCounter& access_counter() const { return access_counter_; }
  uint64_t sampled_blocks() const { return sampled_blocks_; }
  const std::vector<Span>& trace() const { return trace_; }

  // --- for the operations: running and waiting

  /// Whether a kernel is being left, and this is a destructor of it. The host may unwind, too, and wait in a
  /// destructor for a kernel that runs then.
  bool unwinds() const { return std::uncaught_exceptions() > uncaught_of_host_; }

  /// The thread does not run before wake().
  void park(Thread&, Wait);
  void wake(Thread&);
  /// Lets others run now and then, where the schedule is random: a point where an interrupt could happen.
  void jitter(Thread&);
  /// Puts the thread behind all others that can run.
  void yield_poll(Thread&, Wait);
  void count_progress() { ++progress_; }
  /// Data moved, or a thread ended: what the budget of context switches is counted from.
  void count_work() { ++progress_, switches_since_work_ = 0; }

  // --- for the operations: asynchronous operations

  void submit(std::unique_ptr<PendingOperation>);
  /// Lands what a cluster.sync waits for.
  void land_before_cluster_sync();
  bool lands_now();  ///< asked where an operation could take effect at once
  const Options& options() const { return options_; }

  // --- for the operations: failures

  /// Remembers the first failure. The text is completed with kernel, place and schedule.
  void record_failure(const Thread*, const std::string& rule, Location where);
  [[noreturn]] void fail(const Thread&, const std::string& rule, Location where);
  /// After calls that may have recorded a failure of their own.
  void leave_if_failed();
  bool failed() const { return !failure_.empty(); }

  // --- for the operations: observers

  GridOrder* grid_order() { return races_on_ ? grid_order_ : nullptr; }
  RaceChecker* races() { return races_on_ ? race_checker_.get() : nullptr; }
  VirtualClock* clock() { return clock_on_ ? &clock_ : nullptr; }
  AccessCounter& accesses() { return access_counter_; }
  /// What all clusters of this object have touched; null if nobody wants to know.
  GlobalAccesses* global_accesses() { return notes_global_accesses_ ? &global_accesses_ : nullptr; }
  Counters& totals() { return counters_; }
  void converged(Warp&);
  void converged(Block&);
  void flush_copy_instructions(Warp&);
  Site site(Location where);

  NamedBarrier& cluster_barrier() { return cluster_barrier_; }
  std::vector<std::unique_ptr<Block>>& blocks() { return blocks_; }
  unsigned live() const { return live_; }

 private:
  friend class DeadlockReport;

  void prepare(uint64_t index);
  void prepare_block(Block&, unsigned rank, Uint3 index);
  void prepare_thread(Thread&, Block&, unsigned rank);
  void finish();
  void resume(Thread&);
  Thread* pick();
  int next_ready(unsigned from) const;
  int last_ready() const;
  bool let_time_pass();
  void land(size_t position);
  size_t next_to_land();
  void abandon_threads();
  void thread_main(Thread&);
  void thread_exits(Thread&);
  void block_exits(Block&);
  void check_mappings_at_exit(const Block&);
  static void fiber_main(void* thread);
  friend struct Thread;

  const KernelLaunch kernel_;
  const std::function<void()>& thread_body_;
  const Options options_;
  const bool is_instrumented_, notes_global_accesses_;
  GridOrder* const grid_order_;
  const int uncaught_of_host_ = std::uncaught_exceptions();
  uint64_t cluster_count_ = 1;

  Random random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Block>> blocks_;
  unsigned live_ = 0;
  NamedBarrier cluster_barrier_;
  std::vector<uint64_t> ready_;  ///< a bit for each thread
  unsigned last_picked_ = 0;
  std::vector<Thread*> polling_;
  std::deque<std::unique_ptr<PendingOperation>> pending_;

  uint64_t progress_ = 0, progress_seen_ = 0;
  unsigned idle_sweeps_ = 0;
  uint64_t switches_since_work_ = 0;
  bool abandoning_ = false, closing_ = false;
  std::string failure_;

  Counters counters_;
  AccessCounter access_counter_;
  GlobalAccesses global_accesses_;
  uint64_t sampled_blocks_ = 0;
  std::unique_ptr<RaceChecker> race_checker_;
  VirtualClock clock_;
  bool races_on_ = false, clock_on_ = false, counting_ = false, observed_ = false;
  std::vector<Span> trace_;
};

/// The thread that runs now; null outside of kernels.
extern constinit thread_local Thread* current_thread;

/// The running thread. @throws std::logic_error outside of a kernel.
Thread& this_thread(Location where);

// --- shared helpers -------------------------------------------------------------------------------------

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...);
/// "gemm.cuh:57".
std::string to_string(Location);
/// "block (1,0,0) warp 2 lane 5".
std::string describe(const Thread&);
std::string describe(const Block&);
std::string describe(const Mbarrier&);
/// "full[1]".
std::string name_of(const Mbarrier&);
/// The report for a cluster in which nobody can go on.
std::string describe_deadlock(const Cluster&, const char* why);
/// Ends the barrier's phase if everybody has arrived.
void complete_if_all_arrived(Cluster&, Block&, unsigned barrier);
/// Ends a cluster.sync if everybody has arrived who has not exited.
void complete_cluster_barrier(Cluster&);
/// The mbarrier that lives in these eight bytes. @throws if there is none.
Mbarrier& find_mbarrier(Thread&, const uint64_t* object, Location where);
/// The one at the same place in another block. `operation` is the word that reports show.
Mbarrier& find_mbarrier(Thread&, Block&, const uint64_t* object, const char* operation, Location where);
/// Block `rank` of the thread's cluster. @throws if there is none, or if it has left.
Block& find_block(Thread&, unsigned rank, const char* operation, Location where);
/// An arrival by a thread of another block.
void arrive_from_afar(Cluster&, const RemoteArrival&);
/// The thread's block has told `other` something, so `other` may know that its memory is no longer used.
void forget_mapping(const Thread&, Block& other);
/// An arrival on an mbarrier by an asynchronous operation.
void arrive_for_operation(Cluster&, Mbarrier&, const CopyGroup&);
/// The bytes of a copy have landed.
void count_bytes_of(Cluster&, const CountedCopy&);
/// Records a failure if bytes were expected that never came, or came and were never expected.
void check_bytes_at_exit(Thread& last, const Block&);
/// The mbarriers that this thread has initialised may be used by the async proxy.
void publish_initialised_mbarriers(const Thread&);
/// Throws for TMA stores that the exiting thread has left unfinished.
void check_stores_at_exit(Thread&);
/// Registers of a thread at the start of a kernel with blocks of this size.
unsigned registers_at_launch(unsigned threads);
/// Throws if the exiting thread's warp has missed a setmaxnreg of its warpgroup.
void check_register_changes(Thread&);
/// An exit may complete what the remaining lanes wait for.
void complete_collectives_without(Cluster&, Thread& exited);
/// Throws for work that the exiting thread has left unfinished.
void check_nothing_left_in_flight(Thread&);
/// Offset of the pointer in shared memory of the thread's block. @throws if it lies elsewhere.
uint32_t shared_offset(Thread&, const void* pointer, size_t bytes, const char* what, Location where);

}  // namespace cpu_device
