/// @file
/// A running cluster: its threads and blocks, what is in flight, and who watches. Private to the engine.
///
/// A cluster runs whole on one OS thread, so nothing here needs a lock. One Cluster object runs many clusters
/// of a launch, one after the other.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/base/random.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_async.hpp"
#include "common/cpu_device/kernel/engine_barriers.hpp"
#include "common/cpu_device/kernel/engine_block.hpp"
#include "common/cpu_device/kernel/engine_thread.hpp"
#include "common/cpu_device/kernel/engine_waits.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/kernel/grid_order.hpp"
#include "common/cpu_device/kernel/reports/unwritten_reads.hpp"
#include "common/cpu_device/observe/clock.hpp"
#include "common/cpu_device/observe/counters.hpp"
#include "common/cpu_device/observe/forbidden_memory.hpp"
#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/cpu_device/observe/races.hpp"

namespace cpu_device {

/// What the verifier asks about if C is wrong.
struct MovedTiles {
  /// By a tensor's first byte: columns at which boxes of TMA loads began, and how many a box has.
  std::map<const std::byte*, std::map<int, int>> loaded_columns;
  std::vector<Location> staged_at;                   ///< calls of stmatrix, each line once
  std::vector<Location> multiplied_at;               ///< likewise, of wgmma
  std::vector<Location> stored_at;                   ///< likewise, of TMA stores
  std::vector<std::pair<Location, bool>> copied_at;  ///< likewise, of cp.async: has any read its source?
  /// A bit for each warp of a block: those that called stmatrix, those of which a TMA store has read what
  /// they wrote so, and those that issued TMA stores.
  uint32_t staging_warps = 0, read_warps = 0, storing_warps = 0;
  /// Blocks that have ended: in some all of several warpgroups have taken A and B of wgmma from the same
  /// places in shared memory; in some they have not.
  bool shares_operands = false, has_operands_apart = false;
  /// Leading and stride offsets of wgmma's descriptors: of operands with k contiguous at 1, of others at 0.
  std::set<std::array<unsigned, 2>> offsets[2];
  /// The first block, by its number, that has ended with slots for which nobody waited: a sentence, and the
  /// number.
  std::string unread_fills;
  uint64_t of_block = 0;

  /// Of one launch; empty, and never filled again, once they were too many.
  std::vector<WorkOfKernels::MovedBox> boxes;
  bool has_too_many_boxes = false;

  /// @param block whose shared memory the box is brought to, or stored from
  void note_box(const Block& block, const Thread& issuer, const TmaBox& box, bool is_load);
  void note_load(const std::byte* tensor, int column, int columns) {
    int& most = loaded_columns[tensor][column];
    most = std::max(most, columns);
  }
  void note_staging(const Location& where, unsigned warp) {
    note_once(staged_at, where);
    staging_warps |= 1u << warp;
  }
  void note_store(const Location& where, unsigned warp) {
    note_once(stored_at, where);
    storing_warps |= 1u << warp;
  }
  void note_copy(const Location& where, bool reads) {
    for (auto& [place, has_read] : copied_at)
      if (place == where) {
        has_read |= reads;
        return;
      }
    copied_at.emplace_back(where, reads);
  }
  void note_product(const Location& where) { note_once(multiplied_at, where); }
  void note_offsets(bool has_k_contiguous, const std::array<unsigned, 2>& leading_and_stride) {
    constexpr size_t kMostOffsets = 2;  // from there on they differ
    std::set<std::array<unsigned, 2>>& all = offsets[has_k_contiguous];
    if (all.size() < kMostOffsets) all.insert(leading_and_stride);
  }
  void note_operands(const OperandPlaces& of_warpgroups) {
    if (of_warpgroups.empty()) return;
    const auto& first = of_warpgroups.begin()->second;
    const bool is_shared =
        of_warpgroups.size() > 1 && std::all_of(of_warpgroups.begin(), of_warpgroups.end(),
                                                [&](const auto& one) { return one.second == first; });
    (is_shared ? shares_operands : has_operands_apart) = true;
  }
  void note_unread_fills(uint64_t block, const std::string& text) {
    if (text.empty() || (!unread_fills.empty() && of_block <= block)) return;
    unread_fills = text;
    of_block = block;
  }
  void add(const MovedTiles& other) {
    for (const auto& [tensor, boxes] : other.loaded_columns)
      for (const auto& [column, columns] : boxes) note_load(tensor, column, columns);
    for (const Location& where : other.staged_at) note_once(staged_at, where);
    for (const Location& where : other.stored_at) note_once(stored_at, where);
    for (const auto& [where, reads] : other.copied_at) note_copy(where, reads);
    staging_warps |= other.staging_warps;
    read_warps |= other.read_warps;
    storing_warps |= other.storing_warps;
    for (const Location& where : other.multiplied_at) note_product(where);
    for (const bool has_k_contiguous : {false, true})
      for (const auto& one : other.offsets[has_k_contiguous]) note_offsets(has_k_contiguous, one);
    shares_operands |= other.shares_operands;
    has_operands_apart |= other.has_operands_apart;
    note_unread_fills(other.of_block, other.unread_fills);
    boxes.insert(boxes.end(), other.boxes.begin(), other.boxes.end());
    has_too_many_boxes |= other.has_too_many_boxes;
  }

 private:
  static void note_once(std::vector<Location>& all, const Location& where) {
    const auto is_same = [&](const Location& one) { return one.call == where.call && one == where; };
    if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(where);
  }
};

/// Runs clusters of one launch on one OS thread.
class Cluster {
 public:
  /// @param grid_order null where nobody checks it
  Cluster(const KernelLaunch&, const std::function<void()>& thread_body, const Options&,
          bool note_global_accesses, GridOrder* grid_order, SharedLayout& layout);
  ~Cluster();
  Cluster(const Cluster&) = delete;

  /// Runs one cluster to its end or to its failure.
  void run(uint64_t index);
  /// The text of the failure; empty if there was none.
  const std::string& failure() const { return failure_; }

  /// How often a thread was resumed; other OS threads may look.
  const std::atomic<uint64_t>& turns() const { return turns_; }

  const Counters& counters() const { return counters_; }
  const AccessCounter& access_counter() const { return access_counter_; }
  uint64_t sampled_blocks() const { return sampled_blocks_; }
  const std::vector<Span>& trace() const { return trace_; }
  const std::vector<MbarrierRecord>& mbarriers() const { return mbarriers_; }
  const std::vector<unsigned>& registers() const { return registers_; }

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

  /// Threads of the block have passed a barrier. Says so of one that they pass again and again, and ends what
  /// cannot be a right kernel: see suspicious_passes().
  void note_passed(Block&, const char* what, Location where);

  // --- for the operations: asynchronous operations

  void submit(std::unique_ptr<PendingOperation>);
  const std::deque<std::unique_ptr<PendingOperation>>& in_flight() const { return pending_; }
  /// Lands what a cluster.sync waits for.
  void land_before_cluster_sync();
  bool lands_now();  ///< asked where an operation could take effect at once
  const Options& options() const { return options_; }
  /// At most so many run at a time: the processor time of all is their sum.
  unsigned os_threads() const {
    return options_.os_threads ? static_cast<unsigned>(options_.os_threads)
                               : std::max(1u, std::thread::hardware_concurrency());
  }
  const KernelLaunch& kernel() const { return kernel_; }

  // --- for the operations: failures

  /// Remembers the first failure. The text is completed with kernel, place and schedule.
  void record_failure(const Thread*, const std::string& rule, Location where);
  /// The thread is left out where the race names others, whose accesses it only brought to light.
  void record_race(const Thread*, const std::string& race);
  [[noreturn]] void fail(const Thread&, const std::string& rule, Location where);
  /// After calls that may have recorded a failure of their own.
  void leave_if_failed();
  bool failed() const { return !failure_.empty(); }

  // --- for the operations: observers

  GridOrder* grid_order() { return races_on_ ? grid_order_ : nullptr; }
  RaceChecker* races() { return races_on_ ? race_checker_.get() : nullptr; }
  VirtualClock* clock() { return clock_on_ ? &clock_ : nullptr; }
  AccessCounter& accesses() { return access_counter_; }
  MemoryGuard& guard() { return guard_; }
  UnwrittenReads& unwritten_reads() { return unwritten_reads_; }
  MovedTiles& moved_tiles() { return moved_tiles_; }
  /// What all clusters of this object have touched; null if nobody wants to know.
  GlobalAccesses* global_accesses() { return notes_global_accesses_ ? &global_accesses_ : nullptr; }
  Counters& totals() { return counters_; }
  void converged(Warp&);
  void converged(Block&);
  void flush_copy_instructions(Warp&);
  Site site(Location where);

  SharedLayout& layout() { return layout_; }
  /// The offset of a variable, for which the blocks' memory grows where they do not have it yet.
  size_t place_of(SharedVariable&, Location where);

  NamedBarrier& cluster_barrier() { return cluster_barrier_; }
  std::vector<std::unique_ptr<Block>>& blocks() { return blocks_; }
  unsigned live() const { return live_; }

 private:
  std::string with_missing_threads(const std::string& deadlock) const;
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
  void name_loops_of_loads();
  void land(size_t position);
  size_t next_to_land();
  void abandon_threads();
  void thread_main(Thread&);
  void thread_exits(Thread&);
  void block_exits(Block&);
  void note_unread_fills(const Block&);
  void report_suspicions(const Block&);
  void check_mappings_at_exit(const Block&);
  static void fiber_main(void* thread);
  friend struct Thread;

  const KernelLaunch kernel_;
  const std::function<void()>& thread_body_;
  const Options options_;
  const bool is_instrumented_, notes_global_accesses_;
  GridOrder* const grid_order_;
  std::vector<SharedWindow> windows_;
  SharedLayout& layout_;
  std::vector<size_t> places_;  ///< of variables by number, plus one; 0: not known
  const int uncaught_of_host_ = std::uncaught_exceptions();
  uint64_t cluster_count_ = 1;

  Random random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Block>> blocks_;
  unsigned live_ = 0;
  std::atomic<uint64_t> turns_ = 0;
  NamedBarrier cluster_barrier_;
  std::vector<uint64_t> ready_;  ///< a bit for each thread
  unsigned last_picked_ = 0;
  std::vector<Thread*> polling_;
  std::deque<std::unique_ptr<PendingOperation>> pending_;
  size_t arrivals_in_flight_ = 0;  ///< of pending_

  uint64_t progress_ = 0, progress_seen_ = 0;
  unsigned idle_sweeps_ = 0;
  uint64_t stores_seen_ = 0;
  double idle_since_ = 0;  ///< processor time, in seconds
  uint64_t switches_since_work_ = 0;
  std::chrono::steady_clock::time_point begin_;  ///< of the cluster that runs
  bool has_warned_of_passes_ = false;
  bool abandoning_ = false, closing_ = false;
  std::string failure_;

  Counters counters_;
  AccessCounter access_counter_;
  MemoryGuard guard_;
  UnwrittenReads unwritten_reads_;
  MovedTiles moved_tiles_;
  GlobalAccesses global_accesses_;
  uint64_t sampled_blocks_ = 0;
  std::unique_ptr<RaceChecker> race_checker_;
  VirtualClock clock_;
  bool races_on_ = false, clock_on_ = false, counting_ = false, observed_ = false;
  std::vector<Span> trace_;
  std::vector<MbarrierRecord> mbarriers_;  ///< of the first block, where there is a trace
  std::vector<unsigned> registers_;        ///< likewise; see last_registers()
};

}  // namespace cpu_device
