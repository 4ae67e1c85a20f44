/// @file
/// Happens-before checking of shared memory. Two accesses to the same byte, at least one of them a write,
/// must be ordered by barriers, fences and completions; the checker reports the first pair that is not, even
/// if the values happen to be right in this schedule.
///
/// Every thread carries a vector clock of what it has synchronised with, and a second one of what is also
/// visible to the async proxy. An asynchronous operation (cp.async, TMA, wgmma) is an agent of its own: it
/// knows what its issuers knew, and is known to whoever waited for it. The algorithm is FastTrack (Flanagan
/// and Freund, PLDI 2009): a cell of shadow memory holds the epoch of its last write, not a clock.
///
/// One checker serves one cluster at a time, on one OS thread. Threads are numbered through the cluster:
/// block * threads per block + rank in the block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/observe/vector_clock.hpp"

namespace cpu_device {

/// How an access reaches shared memory. Ordinary loads and stores, ldmatrix and cp.async use the generic
/// proxy; TMA and wgmma use the async proxy.
enum class Proxy : uint8_t { generic, async };

/// What a thread does to memory. An atomic operation races with plain accesses alone.
enum class AccessKind : uint8_t {
  plain,
  strong,  ///< volatile, or the first store behind a fence: races with all but atomic operations
  atomic
};
inline bool is_atomic_with(AccessKind one, AccessKind other) {
  return one != AccessKind::plain && other != AccessKind::plain &&
         (one == AccessKind::atomic || other == AccessKind::atomic);
}

/// A place in the source, compact enough to be kept with every access. 0: unknown.
using Site = uint32_t;

/// What a barrier, mbarrier or flag carries from those who arrive to those who wait. One object for each
/// phase of a barrier; clear() starts the next.
class SyncObject {
 public:
  void clear() { *this = {}; }

 private:
  friend class RaceChecker;
  /// A clock that threads publish to. Most of them share their clock: `last` is the one that came last.
  struct Gathered {
    VectorClock clock, last;
  };
  Gathered known_, visible_;
};

/// An asynchronous operation in flight: the knowledge that it started with, and its identity.
class AsyncOperation {
 public:
  bool started() const { return issuers_ != 0; }
  /// The epoch of its first issuer when that issued it.
  uint32_t issue_epoch() const { return issue_epoch_; }

 private:
  friend class RaceChecker;
  /// What all issuers know. Each of them knows more of itself than the others do, so the first issuer's own
  /// count is kept apart as long as it is the only one.
  struct Common {
    VectorClock clock;
    VectorClock last;  ///< of the issuer that came last
    unsigned last_issuer = 0;
    uint32_t own_count = 0;  ///< of the only issuer; 0 if there are several
  };
  Common known_, visible_;
  unsigned issuers_ = 0;
  unsigned first_issuer_ = 0;
  uint32_t issue_epoch_ = 0;
  unsigned agent_ = 0;
  uint32_t epoch_ = 0;
  Proxy proxy_ = Proxy::generic;
  Site site_ = 0;
};

class RaceChecker {
 public:
  /// Called with the text of the first race. It may throw or switch away for good; if it returns, the checker
  /// stays silent until the next begin().
  using Report = std::function<void(const std::string&)>;
  /// The name of a thread in reports: "loader, warp 4 lane 0 of block 0" for example.
  using Describe = std::function<std::string(unsigned thread)>;
  /// Two threads that have no order: what one did in an epoch, or issued, and then the other.
  struct Unordered {
    unsigned first, second;
    uint32_t first_epoch, second_epoch;  ///< 0: not known
    bool first_is_operation, second_is_operation;
    bool reads_early;               ///< the second reads what the first writes, or the first reads it before
    bool first_writes, are_writes;  ///< the first; both
    bool is_one_line;               ///< both are of it
    bool overwrites;                ///< one of them writes, surely in a later round, what the other reads
    bool lacks_fence;               ///< of the async proxy, and nothing else
    bool is_unread;                 ///< nobody has read the byte since the first access
    bool is_rewritten;              ///< before the write of these two, the byte had been written, too
    std::string first_what, second_what;  ///< "TMA load"
    std::string note_of_writer;           ///< see annotate()
    std::size_t offset;                   ///< of the byte,
    unsigned block;                       ///< and its block, by rank
    /// In which epoch a thread has last read in the slot of the byte what the line of the first reads; 0 if
    /// it is not known to have.
    std::function<uint32_t(unsigned thread)> last_read_there = nullptr;
    /// Does the line that reads also read what threads of other warps write?
    std::function<bool()> reads_of_other_warps = nullptr;
    /// "smem.a[2]": of the same array as the byte, what a cp.async has written that the reader knows to have
    /// landed, and that nobody has read; or nothing.
    std::function<std::string()> landed_and_unread = nullptr;
    /// The first writes, and nothing shows that it does so after the second, an operation, was issued.
    bool may_write_before_issue = false;
    /// Says what happened in other words than the check does, which sees only the two accesses.
    std::function<void(const char*)> retell = nullptr;
  };
  using ExplainUnordered = std::function<std::string(const Unordered&)>;

  /// A null `describe` stands for "block b warp w lane l".
  /// `explain_unordered` says which order was meant and is none: half a sentence, or nothing.
  explicit RaceChecker(Report report, Describe describe = nullptr,
                       ExplainUnordered explain_unordered = nullptr);
  ~RaceChecker();
  RaceChecker(const RaceChecker&) = delete;
  RaceChecker& operator=(const RaceChecker&) = delete;

  /// Has anybody written the byte, in this cluster?
  bool is_written(unsigned block, std::size_t offset) const;
  /// The thread that wrote the byte last; nothing if nobody has, or an operation.
  std::optional<unsigned> last_writer(unsigned block, std::size_t offset) const;

  /// How reports call a byte of shared memory: "tile[3][1]", or nothing.
  void name_bytes(std::function<std::string(std::size_t offset)> name) { name_of_byte_ = std::move(name); }

  /// May the operand of a line, "smem.a[slot]", be what holds the byte? A line may name others, too.
  using HoldsByte = std::function<bool(const std::string& operand, unsigned block, std::size_t offset)>;
  void match_operands(HoldsByte holds) { holds_byte_ = std::move(holds); }

  /// Which array a line leaves that accesses this byte; half a sentence, or nothing.
  using ExplainLeft =
      std::function<std::string(const OwnLine&, const std::string& what, bool writes, std::size_t offset)>;
  void explain_left(ExplainLeft explain) { explain_left_ = std::move(explain); }

  /// What one place of the program has accessed last in each byte of a block.
  struct SiteRange {
    Location where;
    std::string what;
    bool writes = false;
    std::size_t first = 0, last = 0;
  };
  std::vector<SiteRange> ranges_of_sites(unsigned block) const;

  /// Starts a cluster of `blocks` blocks with `threads_per_block` threads and `shared_bytes` bytes of shared
  /// memory each. SyncObjects and AsyncOperations of the last cluster must be cleared or dropped before.
  void begin(unsigned blocks, unsigned threads_per_block, std::size_t shared_bytes);

  // --- ordering between threads ------------------------------------------------------------------------

  /// All of `threads` wait for each other: __syncthreads, __syncwarp, a named barrier, cluster.sync. Call it
  /// when the last one arrives. elect, shuffles and votes order nothing: do not call it for them.
  void barrier(const unsigned* threads, unsigned count);
  /// The same for threads first, first + 1, ..., first + count - 1.
  void barrier_range(unsigned first, unsigned count);
  /// `thread` makes what it did so far known to those who acquire `sync`.
  void release(unsigned thread, SyncObject& sync);
  /// A relaxed arrival: only the asynchronous operations that `thread` has waited for become known, such as
  /// the wgmma that has read a slot. Loads and stores, of any thread, do not.
  void release_operations(unsigned thread, SyncObject& sync);
  void acquire(unsigned thread, const SyncObject& sync);
  /// What was released to `from` is released to `to`, too: an arrival that takes effect later.
  void pass_on(const SyncObject& from, SyncObject& to);
  /// fence.proxy.async by `thread`: all that it knows of becomes visible to operations of the async proxy
  /// that are ordered after the fence, no matter who wrote it and who issues them.
  void fence_proxy_async(unsigned thread);

  /// `__threadfence`, of any scope: what `thread` did before it, atomic operations after it release; what
  /// those before it have looked at, it acquires.
  void fence(unsigned thread);
  /// An atomic operation of `thread`, anywhere in memory, changes the object; or looks at it.
  void atomic_changes(unsigned thread, const void* object, bool releases);
  void atomic_looks(unsigned thread, const void* object, bool acquires);

  // --- asynchronous operations -------------------------------------------------------------------------

  /// The queue that an operation completes in. Operations of one queue complete in the order of issue.
  enum class Queue : uint8_t {
    thread,     ///< cp.async and st.async: one queue for each thread
    warpgroup,  ///< wgmma: one queue for each warpgroup
    none        ///< TMA, and arrivals at other blocks: each operation completes on its own
  };
  /// `thread` issues an operation. An operation of several threads (wgmma) is issued once by each: it may
  /// rely on nothing but what all of them know. `what` is a literal: "cp.async", "TMA load", "wgmma".
  void issue(AsyncOperation& op, unsigned thread, Queue queue, Proxy proxy, const char* what, Site site);
  /// The operation, which was just issued, will read at an unknown moment. A report about it then knows what
  /// other threads had written before it was issued.
  void remember_epochs(const AsyncOperation& op);
  /// What reports add to who issued the operation: " for full[1]".
  void annotate(const AsyncOperation& op, std::string note);
  /// `thread` waited for the operation: wgmma.wait_group, cp.async.wait_group, bulk.wait_group.
  void acquire(unsigned thread, const AsyncOperation& op);
  /// The operation completes on a barrier: who acquires `sync` has waited for it. (This says nothing about
  /// what its issuer did; the issuer's own arrival does.)
  void complete(const AsyncOperation& op, SyncObject& sync);

  // --- accesses ----------------------------------------------------------------------------------------

  /// `thread` itself accesses [offset, offset + bytes) of the shared memory of `block` (its rank in the
  /// cluster). Bytes beyond the block's shared memory are ignored. `what` is a literal: "load", "ldmatrix".
  /// An atomic operation that changes nothing is a read. A plain load that nothing orders with an atomic
  /// operation is reported by report_suspicions(): a load at whose line a thread has then changed the same
  /// bytes atomically (a loop of atomicCAS) was a guess, and is none.
  void access(unsigned thread, unsigned block, std::size_t offset, std::size_t bytes, bool write,
              const char* what, Site site, AccessKind kind = AccessKind::plain);
  /// `thread` relies on what was written there, but its own access will be that of an operation.
  void rely_on(unsigned thread, unsigned block, std::size_t offset, std::size_t bytes, const char* what,
               Site site);
  /// The operation reads there, at an unknown moment: reports nothing but a write that it did not wait for.
  void check_early_read(const AsyncOperation& op, unsigned block, std::size_t offset, std::size_t bytes);
  /// All threads of the block have ended: no load can turn out to have been a guess any more.
  void report_suspicions(unsigned block);
  /// All threads of the block have ended: whoever reached into its shared memory from another block must be
  /// ordered before that.
  void leave(unsigned block);
  /// The operation does. It may be called any number of times, at any time after the last issue().
  void access(const AsyncOperation& op, unsigned block, std::size_t offset, std::size_t bytes, bool write);

  /// The place that a call returns to: a plain access. Resolved to file and line only when a report needs it.
  Site site(const void* return_address);
  /// A place that the engine knows. Its file must be a literal.
  Site site(const Location&);
  Site site(const char* file, unsigned line) { return site(Location{file, line, nullptr, nullptr}); }

  /// "store by block 0 warp 1 lane 0 at gemm.cuh:57": who wrote there last. Empty if nobody has.
  std::string describe_last_write(unsigned block, std::size_t offset) const;

  bool reported() const { return reported_; }
  /// Has a thread itself written shared memory, apart from barriers, since the checker was made?
  bool has_thread_written() const { return has_thread_written_; }

  // --- for orders beyond the cluster (grid_order.hpp). What a thread does belongs to one of its epochs.

  uint32_t epoch(unsigned thread) const;
  /// What `thread` does from now on belongs to a new epoch, which is returned.
  uint32_t begin_epoch(unsigned thread);
  /// Does `thread` know what `other` did in that epoch and before?
  bool knows(unsigned thread, unsigned other, uint32_t epoch) const;
  /// How far `thread` knows each thread of the cluster. What it does from now on belongs to a new epoch.
  std::vector<uint32_t> release_epochs(unsigned thread);

 private:
  struct Thread;
  struct Accessor;
  struct Cell;
  struct Reads;
  struct Shadow;
  struct Conflict;
  struct Suspicion;
  enum class Why : uint8_t;

  /// What a thread has learned: all of `with`, and `count` of one component. Threads that share a clock and
  /// learn the same go on sharing one, and comparing their clocks is comparing pointers.
  struct Learned {
    VectorClock before, with;
    unsigned component = 0;
    uint32_t count = 0;
    VectorClock after;
  };
  static constexpr unsigned kLearned = 16;  ///< that are remembered

  struct EngineSite {
    Location where;
    const char* what;  ///< what accessed memory there last
  };

  void publish(const VectorClock& clock, unsigned self, uint32_t own_count, SyncObject::Gathered& to);
  void learn(VectorClock& clock, const SyncObject::Gathered& from);
  void learn(VectorClock& clock, const VectorClock& with, unsigned component, uint32_t count);
  void meet(AsyncOperation::Common& common, bool first, const VectorClock& clock, unsigned self,
            uint32_t own_count);
  unsigned agent_of_warpgroup(unsigned thread) const;
  unsigned agent_of_queue(unsigned thread, Queue queue);

  void name_site(Site site, const char* what);
  Accessor accessor(unsigned thread, Site site) const;
  Accessor accessor(const AsyncOperation& op) const;
  void check(const Accessor& who, unsigned block, std::size_t offset, std::size_t bytes, bool write);
  bool is_of_block(unsigned agent, uint32_t epoch, unsigned block) const;
  /// Is it a copy whose bytes an mbarrier counts?
  bool is_counted_copy(unsigned agent) const {
    return agent >= thread_count_ && !note_of_agent_[agent - thread_count_].empty();
  }
  void check_cell(const Accessor& who, Cell& cell, uint8_t mask, unsigned block, std::size_t offset,
                  bool write);
  void split(Shadow& shadow, std::size_t chunk);
  uint32_t copy_of_list(uint32_t reads);
  uint32_t unused_reads();
  void check_last_write(const Accessor& who, const Cell& cell, uint8_t mask, unsigned block,
                        std::size_t offset, bool write);
  void suspect(const Conflict&, Site load);
  void note_guess(const Accessor& who, const Cell& cell);
  void check_reads(const Accessor& who, const Cell& cell, uint8_t mask, unsigned block, std::size_t offset);
  static uint64_t bit_of_reader(unsigned thread);
  unsigned thread_of(unsigned agent, uint32_t epoch) const;
  bool is_issuer(unsigned agent, uint32_t epoch, unsigned thread) const;
  bool has_written_since(const Accessor& who, const Cell& cell) const;
  bool had_written_before_issue(const Accessor& who, const Cell& cell) const;
  bool knew_at_write(const Cell& cell, unsigned thread, uint32_t epoch) const;
  bool had_read_before(const Accessor& who, const Cell& cell) const;
  Why why_read_after(const Accessor& who, const Cell& cell) const;
  Why why_write_after(const Accessor& who, const Cell& cell, const Reads& reads, unsigned reader) const;
  void record_write(const Accessor& who, Cell& cell, uint8_t mask);
  void record_read(const Accessor& who, Cell& cell, uint8_t mask);
  void find_earlier_read(const Accessor& who, const Cell& cell, Reads& fresh) const;
  template <class Condition>
  void drop_reads(Cell& cell, Condition is_dropped);

  uint32_t epoch_of(unsigned agent, uint32_t epoch) const;
  struct Words;
  void report(Conflict);
  Words words_of(const Conflict&) const;
  Unordered unordered_of(const Conflict&, const Words&) const;
  std::string left_array(const Conflict&, const Words&) const;
  std::string advice_of(const Conflict&, const Words&, const std::string& why) const;
  std::string both_accesses(const Conflict&, const Words&) const;
  bool may_write_before_issue(const Conflict&) const;
  std::string describe(const Conflict&) const;
  std::string describe_agent(unsigned agent, uint32_t epoch, bool write, Site site,
                             const char* role = nullptr) const;
  std::string role_of(Site site, bool write) const;
  /// "smem.c[1]"; nothing where the name has no index.
  std::string slot_of_byte(std::size_t offset) const;
  uint32_t last_read_at(Site site, unsigned block, std::size_t offset, unsigned thread) const;
  bool reads_of_other_warps(Site read, unsigned block) const;
  std::string landed_and_unread(const Conflict&) const;
  std::string describe_site(Site site) const;
  std::string name_of_byte(std::size_t offset) const;
  OwnLine own_line_of(Site site) const;
  std::string what_is_done(Site site, bool write) const;
  /// Is it one line of the source, whoever calls it?
  bool is_same_line(Site one, Site other) const;

  const uintptr_t load_address_;  ///< of the program
  Report report_;
  Describe describe_;
  ExplainUnordered explain_unordered_;
  std::function<std::string(std::size_t)> name_of_byte_;
  HoldsByte holds_byte_;
  ExplainLeft explain_left_;
  bool reported_ = false, only_early_reads_ = false, has_thread_written_ = false;

  unsigned threads_per_block_ = 0, warpgroups_per_block_ = 0, thread_count_ = 0;
  unsigned first_pool_agent_ = 0, pool_agents_ = 0, first_thread_queue_ = 0;
  unsigned next_pool_agent_ = 0;
  std::unique_ptr<ClockPool> clocks_;
  Learned learned_[kLearned];
  unsigned next_learned_ = 0;
  std::vector<Thread> threads_;
  std::vector<uint32_t> agent_epochs_;
  std::vector<unsigned> issuer_of_agent_;
  /// Who issued an operation, and in which epoch of that thread.
  struct Issue {
    unsigned thread;
    uint32_t epoch;
    std::vector<uint32_t> epochs;  ///< of all threads; empty where nobody asked for them
  };
  std::vector<std::vector<Issue>> issues_of_pool_;  ///< all operations of each agent of the pool
  std::vector<VectorClock> known_at_issue_;  ///< by the issuer of the last operation of an agent of the pool
  std::vector<std::string> note_of_agent_;

  std::size_t shared_bytes_ = 0;
  std::vector<Shadow> shadows_;    ///< of each block
  std::vector<Reads> more_reads_;  ///< linked lists; entry 0 is unused
  uint32_t unused_reads_ = 0;
  std::vector<Suspicion> suspicions_;  ///< plain loads against atomic operations
  std::set<Site> guesses_;             ///< loads that an atomic operation of the same bytes follows
  std::unordered_map<const void*, SyncObject> atomics_;

  std::vector<EngineSite> engine_sites_;
  std::map<std::tuple<const char*, unsigned, const void*, const void*>, Site> engine_site_numbers_;
};

}  // namespace cpu_device
