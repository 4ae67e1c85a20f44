/// @file
/// Implementation of the race checker.
///
/// Components of the clocks: the threads of the cluster; a queue for each warpgroup; a pool for operations
/// that complete on their own; a queue for each thread. An operation is known to a thread if the component of
/// its queue is at least the operation's number in that queue. Queues complete in order, so that is exact. In
/// the pool an agent is used again after many operations, and to know the later operation then implies to
/// know the earlier: a race may be missed, none is invented. The same holds for st.async, which shares its
/// thread's queue although each store completes on its own.
#include "common/cpu_device/observe/races.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

constexpr unsigned kPoolAgents = 64;  ///< for each block
constexpr unsigned kNobody = ~0u;

/// A cell of shadow memory stands for this many bytes; which of them an access touches is kept as a mask.
constexpr std::size_t kCellBytes = 2;
constexpr uint8_t kWholeCell = 0b11;
/// The cells of this many bytes have the same history where all accesses are as wide, as most are.
constexpr std::size_t kShadowChunkBytes = 16;
constexpr std::size_t kChunkCells = kShadowChunkBytes / kCellBytes;

/// Reads are kept for groups of 32 agents: the threads of a warp usually read in step. Asynchronous agents
/// have groups of their own.
constexpr unsigned kGroupLanes = kWarpLanes;
constexpr uint16_t kAsyncGroup = 0x8000;

/// Sites of the engine are numbers in a table, others are return addresses relative to the program.
constexpr Site kEngineSite = 0x80000000;

/// The bytes of the cell at `cell * kCellBytes` that [begin, end) covers.
uint8_t mask_of(std::size_t cell, std::size_t begin, std::size_t end) {
  uint8_t mask = 0;
  for (std::size_t i = 0; i < kCellBytes; ++i) {
    const std::size_t byte = cell * kCellBytes + i;
    if (begin <= byte && byte < end) mask |= static_cast<uint8_t>(1u << i);
  }
  return mask;
}

}  // namespace

/// A thread knows `epoch` of itself, and of the others what `known` says; `visible` likewise.
struct RaceChecker::Thread {
  VectorClock known, visible;
  uint32_t epoch = 1, visible_epoch = 0;
  std::vector<uint32_t> wgmma_issues;  ///< its epochs when it issued each wgmma of its warpgroup
  std::vector<uint32_t> queue_issues;  ///< and each operation of its own queue
  SyncObject fenced;                   ///< what it knew at its last fence
  bool has_fenced = false;
  std::vector<const SyncObject*> looked_at;  ///< by atomic operations since
};

/// Who makes an access, and what it has synchronised with.
struct RaceChecker::Accessor {
  const uint32_t* known;
  const uint32_t* visible;
  unsigned self;  ///< the component that the own counts belong to
  uint32_t own_known, own_visible;
  unsigned agent;
  uint32_t epoch;
  Proxy proxy;
  Site site;
  uint16_t read_group;
  uint32_t read_lane;  ///< one bit
  unsigned thread;     ///< that reads or writes, or the first to issue the operation
  bool only_relies = false;
  AccessKind kind = AccessKind::plain;

  bool knows(unsigned component, uint32_t count) const {
    return known[component] >= count || (component == self && own_known >= count);
  }
  bool sees(unsigned component, uint32_t count) const {
    return visible[component] >= count || (component == self && own_visible >= count);
  }
};

/// Reads of the same bytes by agents of one group that were in the same epoch.
struct RaceChecker::Reads {
  uint32_t epoch;
  Site site;
  uint32_t lanes;  ///< who; 0: nobody
  uint16_t group;
  uint8_t mask;
  AccessKind kind;
  uint32_t next;  ///< index in more_reads_; 0: none
  /// The first read of what the last write left, by the same reader: a warp's first lane speaks for it. Epoch
  /// 0: this is the first.
  uint32_t earlier_epoch;
  uint16_t earlier_agent;

  unsigned agent(unsigned lane, unsigned thread_count) const {
    return group & kAsyncGroup ? thread_count + (group & ~kAsyncGroup) : group * kGroupLanes + lane;
  }
};

/// What is remembered of kCellBytes bytes: the last write, and the reads since. (If two threads write the two
/// bytes of a cell, only the later write is remembered.)
struct RaceChecker::Cell {
  uint32_t write_epoch;  ///< 0: never written
  Site write_site;
  uint16_t writer;
  uint8_t write_mask;
  Proxy write_proxy;
  AccessKind write_kind;
  uint16_t writer_before;
  uint64_t readers;  ///< of what the last write left: see bit_of_reader
  Reads reads;
  // Only writes and reports need the rest, so it lies behind what each access looks at.
  uint32_t write_epoch_before;  ///< of the write before the last; 0: there was none
  Site write_site_before;
  AccessKind kind_before;
  uint64_t readers_before;  ///< of what that one left
  uint32_t lanes_before;    ///< of the writer's own warp, that had read what the write before the last left
};

/// The shadow memory of a block. One cell stands for all of its chunk until an access touches only a part.
struct RaceChecker::Shadow {
  std::vector<Cell> whole;        ///< of each chunk that is not split
  std::vector<uint8_t> is_split;  ///< of each chunk
  std::unique_ptr<Cell[]> cells;  ///< those of split chunks

  const Cell& cell(std::size_t index) const {
    return is_split[index / kChunkCells] ? cells[index] : whole[index / kChunkCells];
  }
};

/// How two accesses went wrong, as far as that can be known: a reader that is too early wants what the write
/// brings, a writer that is too early destroys what somebody still reads.
enum class RaceChecker::Why : uint8_t {
  early_read,             ///< a read, and then the write that it should have waited for
  early_read_later,       ///< the write, and then the read that did not wait for it
  overwritten,            ///< a write that did not wait for a read
  overwritten_or_before,  ///< a write of a later round, and an operation that reads: issued before it, or
                          ///< after it
  unordered,              ///< a write and a read; either may be too early
  unordered_async,        ///< likewise, of an asynchronous read
  two_writes,
  plain_and_atomic,
  no_proxy_fence
};

/// Two accesses that are not ordered.
struct RaceChecker::Conflict {
  unsigned block;
  std::size_t offset;
  Why why;
  unsigned first_agent;
  uint32_t first_epoch;
  bool first_writes;
  Site first_site;
  unsigned second_agent;
  uint32_t second_epoch;
  bool second_writes;
  Site second_site;
  bool second_only_relies = false;
  Site write_before = 0;  ///< of a write before the first access, if that is a write
};

/// A plain load and an atomic operation that nothing orders.
struct RaceChecker::Suspicion {
  Conflict conflict;
  Site load;
};

RaceChecker::RaceChecker(Report report, Describe describe, ExplainUnordered explain_unordered)
    : load_address_(program_load_address()),
      report_(std::move(report)),
      describe_(std::move(describe)),
      explain_unordered_(std::move(explain_unordered)) {
  if (describe_) return;
  describe_ = [this](unsigned thread) {
    const unsigned rank = thread % threads_per_block_;
    return fmt::format("block {} warp {} lane {}", thread / threads_per_block_, rank / kWarpLanes,
                       rank % kWarpLanes);
  };
}

RaceChecker::~RaceChecker() = default;

void RaceChecker::begin(unsigned blocks, unsigned threads_per_block, std::size_t shared_bytes) {
  const unsigned warpgroups = (threads_per_block + kWarpgroupThreads - 1) / kWarpgroupThreads;
  threads_per_block_ = threads_per_block;
  warpgroups_per_block_ = warpgroups;
  thread_count_ = blocks * threads_per_block;
  first_pool_agent_ = thread_count_ + blocks * warpgroups;
  pool_agents_ = kPoolAgents * blocks;
  first_thread_queue_ = first_pool_agent_ + pool_agents_;
  next_pool_agent_ = 0;
  reported_ = false;

  const unsigned components = first_thread_queue_ + thread_count_;
  std::fill_n(learned_, kLearned, Learned{});
  threads_.assign(thread_count_, {});
  if (!clocks_ || clocks_->components() < components) clocks_ = std::make_unique<ClockPool>(components);
  agent_epochs_.assign(components - thread_count_, 0);
  issuer_of_agent_.assign(components - thread_count_, kNobody);
  issues_of_pool_.assign(pool_agents_, {});
  known_at_issue_.assign(components - thread_count_, {});
  note_of_agent_.assign(components - thread_count_, {});

  const std::size_t chunks = (shared_bytes + kShadowChunkBytes - 1) / kShadowChunkBytes;
  shared_bytes_ = shared_bytes;
  shadows_.resize(blocks);
  for (Shadow& shadow : shadows_) {
    if (shadow.whole.size() != chunks)
      shadow.cells = std::make_unique_for_overwrite<Cell[]>(chunks * kChunkCells);
    shadow.whole.assign(chunks, Cell{});
    shadow.is_split.assign(chunks, false);
  }
  more_reads_.assign(1, Reads{});
  unused_reads_ = 0;
  suspicions_.clear();
  guesses_.clear();
  atomics_.clear();
}

// --- ordering between threads --------------------------------------------------------------------------

void RaceChecker::publish(const VectorClock& clock, unsigned self, uint32_t own_count,
                          SyncObject::Gathered& to) {
  if (!to.last.is(clock)) {
    clocks_->join(to.clock, clock);
    to.last = clock;
  }
  clocks_->raise(to.clock, self, own_count);
}

void RaceChecker::learn(VectorClock& clock, const SyncObject::Gathered& from) {
  if (clock.is(from.last)) {
    clock = from.clock;  // which includes from.last: no need to compare
  } else {
    learn(clock, from.clock, 0, 0);
  }
}

void RaceChecker::learn(VectorClock& clock, const VectorClock& with, unsigned component, uint32_t count) {
  for (const Learned& known : learned_) {
    if (!known.before.is(clock) || !known.with.is(with)) continue;
    if (known.component != component || known.count != count) continue;
    clock = known.after;
    return;
  }
  VectorClock after = clock;
  clocks_->join(after, with);
  clocks_->raise(after, component, count);
  // Who has learned the same in another order shares a clock again.
  for (const Learned& known : learned_) {
    if (!clocks_->equal(known.after, after)) continue;
    after = known.after;
    break;
  }
  learned_[next_learned_++ % kLearned] = {clock, with, component, count, after};
  clock = std::move(after);
}

void RaceChecker::release(unsigned thread, SyncObject& sync) {
  Thread& t = threads_[thread];
  publish(t.known, thread, t.epoch, sync.known_);
  publish(t.visible, thread, t.visible_epoch, sync.visible_);
  ++t.epoch;
}

void RaceChecker::acquire(unsigned thread, const SyncObject& sync) {
  learn(threads_[thread].known, sync.known_);
  learn(threads_[thread].visible, sync.visible_);
}

void RaceChecker::release_operations(unsigned thread, SyncObject& sync) {
  VectorClock operations = threads_[thread].known;
  clocks_->forget_first(operations, thread_count_);
  clocks_->join(sync.known_.clock, operations);
}

void RaceChecker::fence(unsigned thread) {
  Thread& t = threads_[thread];
  for (const SyncObject* object : t.looked_at) acquire(thread, *object);
  t.looked_at.clear();
  t.fenced.clear();
  release(thread, t.fenced);
  t.has_fenced = true;
}

void RaceChecker::atomic_changes(unsigned thread, const void* object, bool releases) {
  if (releases)
    release(thread, atomics_[object]);
  else if (threads_[thread].has_fenced)
    pass_on(threads_[thread].fenced, atomics_[object]);
}

void RaceChecker::atomic_looks(unsigned thread, const void* object, bool acquires) {
  const auto found = atomics_.find(object);
  if (found == atomics_.end()) return;
  std::vector<const SyncObject*>& looked_at = threads_[thread].looked_at;
  if (acquires)
    acquire(thread, found->second);
  else if (std::find(looked_at.begin(), looked_at.end(), &found->second) == looked_at.end())
    looked_at.push_back(&found->second);
}

void RaceChecker::pass_on(const SyncObject& from, SyncObject& to) {
  clocks_->join(to.known_.clock, from.known_.clock);
  clocks_->join(to.visible_.clock, from.visible_.clock);
}

void RaceChecker::barrier(const unsigned* threads, unsigned count) {
  SyncObject sync;
  for (unsigned i = 0; i < count; ++i) release(threads[i], sync);
  for (unsigned i = 0; i < count; ++i) acquire(threads[i], sync);
}

void RaceChecker::barrier_range(unsigned first, unsigned count) {
  SyncObject sync;
  for (unsigned i = 0; i < count; ++i) release(first + i, sync);
  for (unsigned i = 0; i < count; ++i) acquire(first + i, sync);
}

uint32_t RaceChecker::epoch(unsigned thread) const { return threads_[thread].epoch; }

uint32_t RaceChecker::begin_epoch(unsigned thread) { return ++threads_[thread].epoch; }

bool RaceChecker::knows(unsigned thread, unsigned other, uint32_t epoch) const {
  const Thread& t = threads_[thread];
  return thread == other ? t.epoch >= epoch : clocks_->counts(t.known)[other] >= epoch;
}

std::vector<uint32_t> RaceChecker::release_epochs(unsigned thread) {
  Thread& t = threads_[thread];
  const uint32_t* const counts = clocks_->counts(t.known);
  std::vector<uint32_t> epochs(counts, counts + thread_count_);
  epochs[thread] = t.epoch++;
  return epochs;
}

void RaceChecker::fence_proxy_async(unsigned thread) {
  // Nothing is visible that is not known, so there is nothing to join.
  Thread& t = threads_[thread];
  t.visible = t.known;
  t.visible_epoch = t.epoch++;
}

// --- asynchronous operations ---------------------------------------------------------------------------

unsigned RaceChecker::agent_of_warpgroup(unsigned thread) const {
  return thread_count_ + thread / threads_per_block_ * warpgroups_per_block_ +
         thread % threads_per_block_ / kWarpgroupThreads;
}

unsigned RaceChecker::agent_of_queue(unsigned thread, Queue queue) {
  switch (queue) {
    case Queue::thread:
      return first_thread_queue_ + thread;
    case Queue::warpgroup:
      return agent_of_warpgroup(thread);
    default:
      return first_pool_agent_ + next_pool_agent_++ % pool_agents_;
  }
}

void RaceChecker::meet(AsyncOperation::Common& common, bool first, const VectorClock& clock, unsigned self,
                       uint32_t own_count) {
  if (first) {
    common = {clock, clock, self, own_count};
    return;
  }
  // So far `clock` says nothing of what the only issuer knew of itself; now that others join in, what they
  // know of it counts.
  const unsigned before = common.last_issuer;
  if (clock.is(common.last)) {
    // They know the same, but for what each knows of itself. Of `before` this issuer knows what `clock` says;
    // of this issuer the others know no more than that.
    clocks_->lower(common.clock, before, clocks_->counts(clock)[before]);
  } else {
    if (common.own_count) clocks_->raise(common.clock, before, common.own_count);
    const uint32_t others_know_of_self = clocks_->counts(common.clock)[self];
    clocks_->meet(common.clock, clock);
    clocks_->raise(common.clock, self, std::min(others_know_of_self, own_count));
    common.last = clock;
  }
  common.last_issuer = self;
  common.own_count = 0;
}

void RaceChecker::issue(AsyncOperation& op, unsigned thread, Queue queue, Proxy proxy, const char* what,
                        Site site) {
  const bool first = op.issuers_++ == 0;
  if (first) {
    op.agent_ = agent_of_queue(thread, queue);
    op.epoch_ = ++agent_epochs_[op.agent_ - thread_count_];
    op.proxy_ = proxy;
    op.site_ = site;
    name_site(site, what);
    issuer_of_agent_[op.agent_ - thread_count_] = thread;
    op.first_issuer_ = thread;
    op.issue_epoch_ = threads_[thread].epoch;
    if (queue == Queue::none) {
      known_at_issue_[op.agent_ - thread_count_] = threads_[thread].known;
      issues_of_pool_[op.agent_ - first_pool_agent_].push_back({thread, op.issue_epoch_, {}});
    }
    note_of_agent_[op.agent_ - thread_count_].clear();
  }
  Thread& t = threads_[thread];
  if (queue == Queue::warpgroup) t.wgmma_issues.push_back(t.epoch);
  if (queue == Queue::thread) t.queue_issues.push_back(t.epoch);
  meet(op.known_, first, t.known, thread, t.epoch);
  meet(op.visible_, first, t.visible, thread, t.visible_epoch);
  ++t.epoch;  // what the thread does from now on is not ordered before the operation
}

void RaceChecker::remember_epochs(const AsyncOperation& op) {
  std::vector<uint32_t>& epochs = issues_of_pool_[op.agent_ - first_pool_agent_].back().epochs;
  epochs.reserve(threads_.size());
  for (const Thread& thread : threads_) epochs.push_back(thread.epoch);
}

void RaceChecker::annotate(const AsyncOperation& op, std::string note) {
  note_of_agent_[op.agent_ - thread_count_] = std::move(note);
}

void RaceChecker::acquire(unsigned thread, const AsyncOperation& op) {
  if (op.started()) learn(threads_[thread].known, {}, op.agent_, op.epoch_);
}

void RaceChecker::complete(const AsyncOperation& op, SyncObject& sync) {
  if (op.started()) clocks_->raise(sync.known_.clock, op.agent_, op.epoch_);
}

// --- accesses ------------------------------------------------------------------------------------------

void RaceChecker::access(unsigned thread, unsigned block, std::size_t offset, std::size_t bytes, bool write,
                         const char* what, Site site, AccessKind kind) {
  constexpr size_t kMbarrier = sizeof "mbarrier" - 1;  // the beginning of what is done to one
  name_site(site, what);
  has_thread_written_ = has_thread_written_ || (write && std::strncmp(what, "mbarrier", kMbarrier) != 0);
  Accessor who = accessor(thread, site);
  who.kind = kind;
  check(who, block, offset, bytes, write);
}

RaceChecker::Accessor RaceChecker::accessor(unsigned thread, Site site) const {
  const Thread& t = threads_[thread];
  return {clocks_->counts(t.known),
          clocks_->counts(t.visible),
          thread,
          t.epoch,
          t.visible_epoch,
          thread,
          t.epoch,
          Proxy::generic,
          site,
          static_cast<uint16_t>(thread / kGroupLanes),
          1u << thread % kGroupLanes,
          thread};
}

void RaceChecker::rely_on(unsigned thread, unsigned block, std::size_t offset, std::size_t bytes,
                          const char* what, Site site) {
  if (reported_) return;
  name_site(site, what);
  Accessor who = accessor(thread, site);
  who.only_relies = true;
  const std::size_t end = std::min(offset + bytes, shared_bytes_);
  for (std::size_t i = offset / kCellBytes; i * kCellBytes < end && !reported_; ++i) {
    const uint8_t mask = mask_of(i, offset, end);
    const Cell& cell = shadows_[block].cell(i);
    if (cell.write_mask & mask) check_last_write(who, cell, mask, block, i * kCellBytes, /*write=*/false);
  }
}

bool RaceChecker::is_of_block(unsigned agent, uint32_t epoch, unsigned block) const {
  return thread_of(agent, epoch) / threads_per_block_ == block;
}

void RaceChecker::report_suspicions(unsigned block) {
  for (const Suspicion& suspicion : suspicions_)
    if (!reported_ && suspicion.conflict.block == block && !guesses_.count(suspicion.load))
      report(suspicion.conflict);
}

void RaceChecker::leave(unsigned block) {
  if (reported_ || shadows_.size() == 1) return;
  SyncObject::Gathered known;
  for (unsigned i = 0; i < threads_per_block_; ++i) {
    const unsigned thread = block * threads_per_block_ + i;
    publish(threads_[thread].known, thread, threads_[thread].epoch, known);
  }
  const uint32_t* counts = clocks_->counts(known.clock);
  const auto check_known = [&](std::size_t cell, unsigned agent, uint32_t epoch, bool write, Site site) {
    if (counts[agent] >= epoch || is_of_block(agent, epoch, block) || reported_) return;
    reported_ = true;
    report_(fmt::format(
        "block {} of the cluster leaves while its shared memory ({}) may still be reached from another "
        "block: no cluster_sync or wait orders the two\n  {} at {}{}",
        block, name_of_byte(cell * kCellBytes), describe_agent(agent, epoch, write, site),
        describe_site(site),
        is_counted_copy(agent)
            ? fmt::format(": no thread of block {} has waited for these bytes; is there a step that it "
                          "does not compute?",
                          block)
            : ""));
  };
  const Shadow& shadow = shadows_[block];
  const std::size_t cells = shadow.whole.size() * kChunkCells;
  for (std::size_t i = 0; i < cells && !reported_;) {
    const Cell& cell = shadow.cell(i);
    if (cell.write_mask) check_known(i, cell.writer, cell.write_epoch, /*write=*/true, cell.write_site);
    for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
      for (uint32_t lanes = reads->lanes; lanes; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
        check_known(i, reads->agent(lane, thread_count_), reads->epoch, /*write=*/false, reads->site);
      }
      if (!reads->next) break;
    }
    i += shadow.is_split[i / kChunkCells] ? 1 : kChunkCells;
  }
}

void RaceChecker::access(const AsyncOperation& op, unsigned block, std::size_t offset, std::size_t bytes,
                         bool write) {
  if (op.started()) check(accessor(op), block, offset, bytes, write);
}

void RaceChecker::check_early_read(const AsyncOperation& op, unsigned block, std::size_t offset,
                                   std::size_t bytes) {
  only_early_reads_ = true;
  access(op, block, offset, bytes, /*write=*/false);
  only_early_reads_ = false;
}

RaceChecker::Accessor RaceChecker::accessor(const AsyncOperation& op) const {
  const unsigned self = op.issuers_ == 1 ? op.known_.last_issuer : kNobody;
  const unsigned queue = op.agent_ - thread_count_;
  return {clocks_->counts(op.known_.clock),
          clocks_->counts(op.visible_.clock),
          self,
          op.known_.own_count,
          op.visible_.own_count,
          op.agent_,
          op.epoch_,
          op.proxy_,
          op.site_,
          static_cast<uint16_t>(kAsyncGroup | queue),
          1u,
          op.first_issuer_};
}

void RaceChecker::check(const Accessor& who, unsigned block, std::size_t offset, std::size_t bytes,
                        bool write) {
  if (reported_ || bytes == 0 || offset >= shared_bytes_) return;
  Shadow& shadow = shadows_[block];
  const std::size_t end = std::min(offset + bytes, shared_bytes_);
  std::size_t chunk_end = 0;
  for (std::size_t begin = offset; begin < end && !reported_; begin = chunk_end) {
    const std::size_t chunk = begin / kShadowChunkBytes;
    chunk_end = std::min(end, (chunk + 1) * kShadowChunkBytes);
    const bool is_whole = chunk_end - begin == kShadowChunkBytes;
    if (is_whole && !shadow.is_split[chunk]) {
      check_cell(who, shadow.whole[chunk], kWholeCell, block, begin, write);
      continue;
    }
    if (!shadow.is_split[chunk]) split(shadow, chunk);
    for (std::size_t i = begin / kCellBytes; i * kCellBytes < chunk_end && !reported_; ++i)
      check_cell(who, shadow.cells[i], mask_of(i, offset, end), block, i * kCellBytes, write);
    if (is_whole && write && !reported_) {  // nothing older is remembered of any of its cells
      shadow.whole[chunk] = shadow.cells[chunk * kChunkCells];
      shadow.is_split[chunk] = false;
    }
  }
}

void RaceChecker::check_cell(const Accessor& who, Cell& cell, uint8_t mask, unsigned block,
                             std::size_t offset, bool write) {
  // Who overwrites what was written and is being read has forgotten the readers: that says more than two
  // writes.
  const bool has_reads = write && cell.reads.lanes;
  if (who.kind == AccessKind::atomic) note_guess(who, cell);
  const bool others_read =
      has_reads && cell.readers & ~bit_of_reader(thread_of(cell.writer, cell.write_epoch));
  if (others_read) check_reads(who, cell, mask, block, offset);
  if (cell.write_mask & mask && !reported_) check_last_write(who, cell, mask, block, offset, write);
  if (has_reads && !others_read && !reported_) check_reads(who, cell, mask, block, offset);
  if (write) {
    record_write(who, cell, mask);
  } else {
    record_read(who, cell, mask);
  }
}

/// From now on each cell of the chunk has a history of its own.
void RaceChecker::split(Shadow& shadow, std::size_t chunk) {
  Cell* const cells = &shadow.cells[chunk * kChunkCells];
  std::fill_n(cells, kChunkCells, shadow.whole[chunk]);
  for (std::size_t i = 1; i < kChunkCells; ++i) cells[i].reads.next = copy_of_list(cells[0].reads.next);
  shadow.is_split[chunk] = true;
}

/// `reads` is the index of the first in more_reads_, as is the result.
uint32_t RaceChecker::copy_of_list(uint32_t reads) {
  if (!reads) return 0;
  const uint32_t rest = copy_of_list(more_reads_[reads].next);
  const uint32_t copy = unused_reads();
  more_reads_[copy] = more_reads_[reads];
  more_reads_[copy].next = rest;
  return copy;
}

/// The index of an element of more_reads_ that is in no list.
uint32_t RaceChecker::unused_reads() {
  const uint32_t index = unused_reads_;
  if (index) {
    unused_reads_ = more_reads_[index].next;
    return index;
  }
  more_reads_.emplace_back();
  return static_cast<uint32_t>(more_reads_.size() - 1);
}

void RaceChecker::check_last_write(const Accessor& who, const Cell& cell, uint8_t mask, unsigned block,
                                   std::size_t offset, bool write) {
  if (cell.writer == who.agent && cell.write_epoch == who.epoch) return;
  if (who.kind == AccessKind::atomic && cell.write_kind == AccessKind::atomic &&
      cell.kind_before == AccessKind::plain && cell.write_epoch_before &&
      !who.knows(cell.writer_before, cell.write_epoch_before)) {
    report({block, offset, Why::plain_and_atomic, cell.writer_before, cell.write_epoch_before, true,
            cell.write_site_before, who.agent, who.epoch, write, who.site});
    return;
  }
  if (is_atomic_with(cell.write_kind, who.kind)) return;
  const bool is_atomic = cell.write_kind == AccessKind::atomic || who.kind == AccessKind::atomic;
  Why why;
  if (is_atomic && !who.knows(cell.writer, cell.write_epoch)) {
    why = Why::plain_and_atomic;
  } else if (!who.knows(cell.writer, cell.write_epoch)) {
    why = write ? Why::two_writes : why_read_after(who, cell);
  } else if (who.proxy == Proxy::async && cell.write_proxy == Proxy::generic &&
             !who.sees(cell.writer, cell.write_epoch)) {
    why = Why::no_proxy_fence;
  } else {
    return;
  }
  const std::size_t first_byte = cell.write_mask & mask & 1 ? 0 : 1;
  const Conflict conflict{block,
                          offset + first_byte,
                          why,
                          cell.writer,
                          cell.write_epoch,
                          true,
                          cell.write_site,
                          who.agent,
                          who.epoch,
                          write,
                          who.site,
                          who.only_relies,
                          cell.write_epoch_before ? cell.write_site_before : 0};
  if (why == Why::plain_and_atomic && !write && who.kind == AccessKind::plain)
    suspect(conflict, who.site);
  else
    report(conflict);
}

void RaceChecker::suspect(const Conflict& conflict, Site load) {
  const bool is_known = std::any_of(suspicions_.begin(), suspicions_.end(), [&](const Suspicion& suspicion) {
    return suspicion.load == load && suspicion.conflict.block == conflict.block;
  });
  if (!is_known) suspicions_.push_back({conflict, load});
}

/// `who` makes an atomic operation: has it loaded these bytes before?
void RaceChecker::note_guess(const Accessor& who, const Cell& cell) {
  for (const Suspicion& suspicion : suspicions_) {
    const Conflict& conflict = suspicion.conflict;
    const unsigned reader = conflict.first_writes ? conflict.second_agent : conflict.first_agent;
    if (reader == who.agent) guesses_.insert(suspicion.load);
  }
  for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
    if (reads->kind == AccessKind::plain && reads->group == who.read_group && reads->lanes & who.read_lane &&
        reads->epoch == who.epoch)
      guesses_.insert(reads->site);
    if (!reads->next) return;
  }
}

/// Readers share bits with others now and then.
uint64_t RaceChecker::bit_of_reader(unsigned thread) { return uint64_t{1} << thread / kWarpLanes % 64; }

/// Who did, or issued, what the agent did in its own `epoch`.
unsigned RaceChecker::thread_of(unsigned agent, uint32_t epoch) const {
  if (agent < thread_count_) return agent;
  if (agent < first_pool_agent_ || agent >= first_thread_queue_)
    return issuer_of_agent_[agent - thread_count_];
  return issues_of_pool_[agent - first_pool_agent_][epoch - 1].thread;
}

/// `who` reads without being ordered after the last write.
RaceChecker::Why RaceChecker::why_read_after(const Accessor& who, const Cell& cell) const {
  const unsigned writer_thread = thread_of(cell.writer, cell.write_epoch);
  const Thread& writer = threads_[writer_thread];
  const bool reads_later = who.agent >= thread_count_;
  // The writer was told of the operation, and that is done only when it is to be waited for no more.
  if (reads_later && who.thread != writer_thread) {
    const uint32_t issue = epoch_of(who.agent, who.epoch);
    if (issue && !had_written_before_issue(who, cell) && knew_at_write(cell, who.thread, issue))
      return Why::overwritten;
  }
  if (reads_later && has_written_since(who, cell)) return Why::overwritten;
  // Or a copy of one of its threads that was issued after it.
  if (reads_later && who.agent < first_pool_agent_ && cell.writer >= thread_count_ &&
      is_issuer(who.agent, who.epoch, writer_thread)) {
    const std::vector<uint32_t>& issues = writer.wgmma_issues;
    if (issues.size() >= who.epoch && epoch_of(cell.writer, cell.write_epoch) > issues[who.epoch - 1])
      return Why::overwritten;
  }
  // The reader comes after the issue of the copy that writes, so what it wants is the copy.
  if (cell.writer >= thread_count_) {
    const unsigned issuer = writer_thread;
    const bool is_last = agent_epochs_[cell.writer - thread_count_] == cell.write_epoch;
    if (who.thread == issuer || (is_last && who.knows(issuer, epoch_of(cell.writer, cell.write_epoch))))
      return Why::early_read_later;
  }
  if (!cell.write_epoch_before || had_read_before(who, cell) ||
      !who.knows(cell.writer_before, cell.write_epoch_before))
    return Why::early_read_later;
  // It has not read what was there before, which the same line had written.
  if (cell.write_site_before == cell.write_site)
    return reads_later ? Why::overwritten_or_before : Why::overwritten;
  return reads_later ? Why::unordered_async : Why::unordered;
}

/// Has a thread that issued the operation `who` written the cell itself since?
bool RaceChecker::has_written_since(const Accessor& who, const Cell& cell) const {
  if (cell.writer >= thread_count_ || !is_issuer(who.agent, who.epoch, cell.writer)) return false;
  if (who.agent >= first_pool_agent_) return cell.write_epoch > epoch_of(who.agent, who.epoch);
  const std::vector<uint32_t>& issues = threads_[cell.writer].wgmma_issues;
  return issues.size() >= who.epoch && cell.write_epoch > issues[who.epoch - 1];
}

/// Is the write known to have come before the issue of the operation `who`, in this run?
bool RaceChecker::had_written_before_issue(const Accessor& who, const Cell& cell) const {
  if (cell.writer >= thread_count_ || who.agent < first_pool_agent_ || who.agent >= first_thread_queue_)
    return false;
  const Issue& issue = issues_of_pool_[who.agent - first_pool_agent_][who.epoch - 1];
  return !issue.epochs.empty() && cell.write_epoch < issue.epochs[cell.writer];
}

/// Did the last writer know what `thread` did in that epoch when it wrote, or issued the copy that wrote? Of
/// operations in queues that is not kept, and what the writer knows now stands for it.
bool RaceChecker::knew_at_write(const Cell& cell, unsigned thread, uint32_t epoch) const {
  if (cell.writer >= first_pool_agent_ && cell.writer < first_thread_queue_) {
    const unsigned queue = cell.writer - thread_count_;
    return agent_epochs_[queue] == cell.write_epoch &&
           clocks_->counts(known_at_issue_[queue])[thread] >= epoch;
  }
  return knows(thread_of(cell.writer, cell.write_epoch), thread, epoch);
}

/// Had `who` read what the write before the last left? Its warp speaks for it, unless the writer is of that
/// warp: that one may have read for itself alone.
bool RaceChecker::had_read_before(const Accessor& who, const Cell& cell) const {
  const bool same_warp = who.agent < thread_count_ && cell.writer < thread_count_ &&
                         who.thread / kWarpLanes == cell.writer / kWarpLanes;
  return same_warp ? (cell.lanes_before & who.read_lane) != 0
                   : (cell.readers_before & bit_of_reader(who.thread)) != 0;
}

void RaceChecker::check_reads(const Accessor& who, const Cell& cell, uint8_t mask, unsigned block,
                              std::size_t offset) {
  for (const Reads* reads = &cell.reads;; reads = &more_reads_[reads->next]) {
    if (reads->mask & mask) {
      for (uint32_t lanes = reads->lanes; lanes; lanes &= lanes - 1) {
        const unsigned agent = reads->agent(static_cast<unsigned>(__builtin_ctz(lanes)), thread_count_);
        if (agent == who.agent && reads->epoch == who.epoch) continue;
        if (is_atomic_with(reads->kind, who.kind)) continue;
        const bool knows = who.knows(agent, reads->epoch);
        // An ordinary read may still be on its way when the async proxy writes; an asynchronous one is known
        // only once it is complete.
        const bool fenced =
            who.proxy == Proxy::generic || agent >= thread_count_ || who.sees(agent, reads->epoch);
        if (knows && fenced) continue;
        const bool is_atomic = reads->kind == AccessKind::atomic || who.kind == AccessKind::atomic;
        const Why why = knows       ? Why::no_proxy_fence
                        : is_atomic ? Why::plain_and_atomic
                                    : why_write_after(who, cell, *reads, agent);
        const std::size_t first_byte = reads->mask & mask & 1 ? 0 : 1;
        const Conflict conflict{block,       offset + first_byte, why,       agent, reads->epoch, false,
                                reads->site, who.agent,           who.epoch, true,  who.site};
        if (why == Why::plain_and_atomic && reads->kind == AccessKind::plain) {
          suspect(conflict, reads->site);
          continue;
        }
        report(conflict);
        return;
      }
    }
    if (!reads->next) return;
  }
}

/// `who` writes without being ordered after a read by `reader`.
RaceChecker::Why RaceChecker::why_write_after(const Accessor& who, const Cell& cell, const Reads& reads,
                                              unsigned reader) const {
  // Nobody can have wanted to read what was there before the first write.
  if (!cell.write_epoch) return Why::early_read;
  // A thread that reads where a copy of its own is to land.
  if (who.agent >= thread_count_ && reader == who.self && reads.epoch > who.own_known) return Why::early_read;
  // The writer did wait for the reader to read what was there; but the reader read it again.
  if (reads.earlier_epoch && who.knows(reads.earlier_agent, reads.earlier_epoch)) return Why::early_read;
  return Why::overwritten;
}

/// Is `thread` one of those that issue the operations of the agent?
bool RaceChecker::is_issuer(unsigned agent, uint32_t epoch, unsigned thread) const {
  if (agent >= first_pool_agent_) return thread_of(agent, epoch) == thread;
  return agent_of_warpgroup(thread) == agent;
}

void RaceChecker::record_write(const Accessor& who, Cell& cell, uint8_t mask) {
  const bool same_write =
      cell.writer == who.agent && cell.write_epoch == who.epoch && cell.write_kind == who.kind;
  cell.write_mask = same_write ? cell.write_mask | mask : mask;
  // Of a row of atomic operations the plain write before them is remembered.
  const bool is_in_row = who.kind == AccessKind::atomic && cell.write_kind == AccessKind::atomic;
  if (!same_write && !is_in_row) {
    cell.kind_before = cell.write_kind;
    cell.writer_before = cell.writer;
    cell.write_epoch_before = cell.write_epoch;
    cell.write_site_before = cell.write_site;
    cell.readers_before = std::exchange(cell.readers, 0);
    cell.lanes_before = 0;
    for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
      if (reads->group == who.read_group) cell.lanes_before |= reads->lanes;
      if (!reads->next) break;
    }
  }
  cell.writer = static_cast<uint16_t>(who.agent);
  cell.write_epoch = who.epoch;
  cell.write_site = who.site;
  cell.write_proxy = who.proxy;
  cell.write_kind = who.kind;
  if (cell.reads.lanes) drop_reads(cell, [&](const Reads& reads) { return (reads.mask & ~mask) == 0; });
}

void RaceChecker::record_read(const Accessor& who, Cell& cell, uint8_t mask) {
  for (Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
    if (reads->group == who.read_group && reads->epoch == who.epoch && reads->mask == mask &&
        reads->kind == who.kind) {
      reads->lanes |= who.read_lane;
      return;
    }
    if (!reads->next) break;
  }
  Reads fresh{who.epoch, who.site, who.read_lane, who.read_group, mask, who.kind, 0, 0, 0};
  if (cell.readers & bit_of_reader(who.thread)) find_earlier_read(who, cell, fresh);
  cell.readers |= bit_of_reader(who.thread);
  // A read that this one is ordered after need not be remembered: who is ordered after this one is ordered
  // after that one, too.
  if (cell.reads.lanes) {
    drop_reads(cell, [&](const Reads& reads) {
      if (reads.mask & ~mask || reads.kind != who.kind) return false;
      for (uint32_t lanes = reads.lanes; lanes; lanes &= lanes - 1) {
        const unsigned agent = reads.agent(static_cast<unsigned>(__builtin_ctz(lanes)), thread_count_);
        if (!who.knows(agent, reads.epoch)) return false;
      }
      return true;
    });
  }
  if (!cell.reads.lanes) {
    cell.reads = fresh;
    return;
  }
  const uint32_t index = unused_reads();
  more_reads_[index] = fresh;
  more_reads_[index].next = cell.reads.next;
  cell.reads.next = index;
}

void RaceChecker::find_earlier_read(const Accessor& who, const Cell& cell, Reads& fresh) const {
  for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(reads->lanes));
    const bool is_same = reads->group == who.read_group
                             ? (reads->lanes & who.read_lane) != 0
                             : (reads->group & who.read_group & kAsyncGroup) != 0 &&
                                   thread_of(reads->agent(lane, thread_count_), reads->epoch) == who.thread;
    if (is_same && reads->earlier_epoch) {
      fresh.earlier_epoch = reads->earlier_epoch;
      fresh.earlier_agent = reads->earlier_agent;
      return;
    }
    if (is_same) {
      fresh.earlier_epoch = reads->epoch;
      fresh.earlier_agent = static_cast<uint16_t>(
          reads->group == who.read_group ? who.agent : reads->agent(lane, thread_count_));
      return;
    }
    if (!reads->next) return;
  }
}

template <class Condition>
void RaceChecker::drop_reads(Cell& cell, Condition is_dropped) {
  for (uint32_t* link = &cell.reads.next; *link;) {
    const uint32_t index = *link;
    Reads& reads = more_reads_[index];
    if (!is_dropped(reads)) {
      link = &reads.next;
      continue;
    }
    *link = reads.next;
    reads.next = unused_reads_;
    unused_reads_ = index;
  }
  if (!is_dropped(cell.reads)) return;
  const uint32_t index = cell.reads.next;
  if (!index) {
    cell.reads.lanes = 0;
    return;
  }
  cell.reads = more_reads_[index];  // the list moves up
  more_reads_[index].next = unused_reads_;
  unused_reads_ = index;
}

// --- reports -------------------------------------------------------------------------------------------

Site RaceChecker::site(const void* return_address) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(return_address) - load_address_;
  return offset < kEngineSite ? static_cast<Site>(offset) : 0;  // 0: in a shared library
}

Site RaceChecker::site(const Location& where) {
  const auto [entry, is_new] =
      engine_site_numbers_.try_emplace({where.file, where.line, where.call, where.outer_call}, 0);
  if (is_new) {
    entry->second = kEngineSite | static_cast<Site>(engine_sites_.size());
    engine_sites_.push_back({where, ""});
  }
  return entry->second;
}

void RaceChecker::name_site(Site site, const char* what) {
  if (site & kEngineSite) engine_sites_[site & ~kEngineSite].what = what;
}

std::string RaceChecker::describe_site(Site site) const {
  if (site & kEngineSite) {
    const Location& where = engine_sites_[site & ~kEngineSite].where;
    return short_path(where.file) + ":" + std::to_string(where.line) + describe_callers(where);
  }
  return site ? describe_call_site(program_load_address() + site) : "an unknown place";
}

bool RaceChecker::is_same_line(Site one, Site other) const {
  if (!one || !other) return false;
  const auto line = [this](Site site) {
    const std::string calls = describe_site(site);
    return calls.substr(0, calls.find(", called from "));
  };
  return line(one) == line(other);
}

std::string RaceChecker::what_is_done(Site site, bool write) const {
  return site & kEngineSite ? engine_sites_[site & ~kEngineSite].what : write ? "store" : "load";
}

/// "a read". What an operation does to a barrier is noted as a read of its eight bytes, too.
std::string RaceChecker::role_of(Site site, bool write) const {
  const std::string what = what_is_done(site, write);
  if (what.rfind("mbarrier_arrive", 0) == 0) return "an arrival";
  if (write || what == "mbarrier.init") return "a write";
  return what.rfind("mbarrier", 0) == 0 ? "a use" : "a read";
}

OwnLine RaceChecker::own_line_of(Site site) const {
  if (site & kEngineSite) {
    return own_line(engine_sites_[site & ~kEngineSite].where);
  }
  if (!site) return {"an unknown place", {}};
  const uintptr_t address = program_load_address() + site;
  OwnLine line = own_line({"", 0, reinterpret_cast<const void*>(address), nullptr});
  if (line.place == ":0") line.place = describe_call_site(address);
  return line;
}

std::string RaceChecker::describe_agent(unsigned agent, uint32_t epoch, bool write, Site site,
                                        const char* role) const {
  std::string text = what_is_done(site, write);
  if (site & kEngineSite) text += " (" + (role ? role : role_of(site, write)) + ")";
  if (agent < thread_count_) return text + " by " + describe_(agent);
  const unsigned queue = agent - thread_count_;
  const std::string issuer = describe_(thread_of(agent, epoch));
  if (agent < first_pool_agent_) return text + " issued by the warpgroup of " + issuer;
  // An agent of the pool may have been used again since.
  const bool is_last = agent_epochs_[queue] == epoch || agent >= first_thread_queue_;
  return text + " issued by " + issuer + (is_last ? note_of_agent_[queue] : "");
}

std::string RaceChecker::describe(const Conflict& conflict) const {
  const auto is_copy = [&](unsigned agent) { return agent >= thread_count_; };
  switch (conflict.why) {
    case Why::early_read:
      return is_copy(conflict.second_agent) ? "read before the copy landed: no barrier or wait orders the two"
                                            : "read before it was written: no barrier or wait orders the two";
    case Why::early_read_later:
      return is_copy(conflict.first_agent)
                 ? "may be read before the copy lands: no barrier or wait orders the two"
                 : "may be read before it is written: no barrier or wait orders the two";
    case Why::overwritten:
      // An asynchronous read may have been issued before the write, and be under way.
      return conflict.first_writes && !is_copy(conflict.second_agent)
                 ? "overwritten before it was read, by the write of a later round: no barrier or "
                   "wait orders the two"
                 : "overwritten while it may still be read: no barrier or wait orders the two";
    case Why::overwritten_or_before:
      return "overwritten while it may still be read, or before it is read: no barrier or wait orders the "
             "two";
    case Why::unordered:
      return "a write and a read that no barrier or wait orders: it is read too early, or overwritten too "
             "early";
    case Why::unordered_async:
      return "a write, and an asynchronous read that may happen at any time until it is waited for: no "
             "barrier "
             "or wait orders the two";
    case Why::two_writes:
      return "two writes that no barrier or wait orders";
    case Why::plain_and_atomic:
      return "a plain access and an atomic operation that no barrier or wait orders";
    case Why::no_proxy_fence:
      return std::string(conflict.first_writes
                             ? "the async proxy may not see an ordinary write"
                             : "the async proxy may overwrite what an ordinary read has not finished") +
             ": no fence.proxy.async is ordered between the two";
  }
  return "";
}

/// The epoch in which the agent's thread did or issued what it did in its own `epoch`.
uint32_t RaceChecker::epoch_of(unsigned agent, uint32_t epoch) const {
  if (agent < thread_count_) return epoch;
  const unsigned queue = agent - thread_count_;
  if (agent < first_pool_agent_) return threads_[issuer_of_agent_[queue]].wgmma_issues[epoch - 1];
  if (agent >= first_thread_queue_) return threads_[agent - first_thread_queue_].queue_issues[epoch - 1];
  return issues_of_pool_[agent - first_pool_agent_][epoch - 1].epoch;
}

std::string RaceChecker::describe_last_write(unsigned block, std::size_t offset) const {
  const Cell& cell = shadows_[block].cell(offset / kCellBytes);
  if (!cell.write_epoch) return "";
  return describe_agent(cell.writer, cell.write_epoch, /*write=*/true, cell.write_site) + " at " +
         describe_site(cell.write_site);
}

std::string RaceChecker::name_of_byte(std::size_t offset) const {
  const std::string name = name_of_byte_ ? name_of_byte_(offset) : "";
  return name.empty() ? fmt::format("byte {}", offset) : name;
}

bool RaceChecker::is_written(unsigned block, std::size_t offset) const {
  return shadows_[block].cell(offset / kCellBytes).write_epoch != 0;
}

std::optional<unsigned> RaceChecker::last_writer(unsigned block, std::size_t offset) const {
  const Cell& cell = shadows_[block].cell(offset / kCellBytes);
  if (!cell.write_epoch || cell.writer >= thread_count_) return std::nullopt;
  return cell.writer;
}

std::string RaceChecker::slot_of_byte(std::size_t offset) const {
  const std::string name = name_of_byte(offset);
  return name.substr(0, name.find(']') + 1);
}

uint32_t RaceChecker::last_read_at(Site site, unsigned block, std::size_t offset, unsigned thread) const {
  const std::string slot = slot_of_byte(offset);
  const Shadow& shadow = shadows_[block];
  const std::size_t cells = shadow.whole.size() * kChunkCells;
  uint32_t last = 0;
  for (std::size_t i = 0; i < cells; i += shadow.is_split[i / kChunkCells] ? 1 : kChunkCells) {
    const Cell& cell = shadow.cell(i);
    for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
      for (uint32_t lanes = reads->site == site ? reads->lanes : 0; lanes; lanes &= lanes - 1)
        if (reads->epoch > last &&
            reads->agent(static_cast<unsigned>(__builtin_ctz(lanes)), thread_count_) == thread &&
            slot_of_byte(i * kCellBytes) == slot)
          last = reads->epoch;
      if (!reads->next) break;
    }
  }
  return last;
}

/// Does the line of the site read what threads of other warps than the reader's have written?
bool RaceChecker::reads_of_other_warps(Site read, unsigned block) const {
  std::map<Site, bool> is_of_line;
  const auto is_there = [&](Site site) {
    const auto [entry, is_new] = is_of_line.try_emplace(site, false);
    if (is_new) entry->second = site == read || is_same_line(site, read);
    return entry->second;
  };
  const Shadow& shadow = shadows_[block];
  const std::size_t cells = shadow.whole.size() * kChunkCells;
  for (std::size_t i = 0; i < cells; i += shadow.is_split[i / kChunkCells] ? 1 : kChunkCells) {
    const Cell& cell = shadow.cell(i);
    if (!cell.write_epoch) continue;
    const unsigned warp = thread_of(cell.writer, cell.write_epoch) / kWarpLanes;
    for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(reads->lanes));
      const unsigned reader = thread_of(reads->agent(lane, thread_count_), reads->epoch);
      if (reader / kWarpLanes != warp && is_there(reads->site)) return true;
      if (!reads->next) break;
    }
  }
  return false;
}

std::vector<RaceChecker::SiteRange> RaceChecker::ranges_of_sites(unsigned block) const {
  struct Range {
    std::size_t first, last;
  };
  std::unordered_map<uint64_t, Range> ranges;  // by the site, and whether it writes
  uint64_t last_key = 0;
  Range* last = nullptr;
  const auto note = [&](Site site, bool writes, std::size_t offset, std::size_t bytes) {
    const uint64_t key = uint64_t{site} << 1 | writes;
    if (key != last_key || !last) last = &ranges.try_emplace(key, Range{offset, offset}).first->second;
    last_key = key;
    last->first = std::min(last->first, offset);
    last->last = std::max(last->last, offset + bytes - kCellBytes);  // its second byte may be another's
  };
  const Shadow& shadow = shadows_[block];
  const std::size_t cells = std::min(shadow.whole.size() * kChunkCells, shared_bytes_ / kCellBytes);
  for (std::size_t i = 0; i < cells;) {
    const std::size_t count = shadow.is_split[i / kChunkCells] ? 1 : kChunkCells;
    const Cell& cell = shadow.cell(i);
    if (cell.write_epoch) note(cell.write_site, true, i * kCellBytes, count * kCellBytes);
    if (cell.write_epoch_before) note(cell.write_site_before, true, i * kCellBytes, count * kCellBytes);
    for (const Reads* reads = &cell.reads; reads->lanes; reads = &more_reads_[reads->next]) {
      note(reads->site, false, i * kCellBytes, count * kCellBytes);
      if (!reads->next) break;
    }
    i += count;
  }
  std::vector<SiteRange> all;
  for (const auto& [key, range] : ranges) {
    const auto site = static_cast<Site>(key >> 1);
    if (!site) continue;
    const bool is_operation = site & kEngineSite;
    const auto* const address = reinterpret_cast<const void*>(program_load_address() + site);
    all.push_back(
        {is_operation ? engine_sites_[site & ~kEngineSite].where : Location{"", 0, address, nullptr},
         what_is_done(site, key & 1), (key & 1) != 0, range.first, range.last});
  }
  std::sort(all.begin(), all.end(), [](const SiteRange& one, const SiteRange& other) {
    return std::tie(one.first, one.last) < std::tie(other.first, other.last);
  });
  return all;
}

std::string RaceChecker::landed_and_unread(const Conflict& conflict) const {
  const std::string read = slot_of_byte(conflict.offset);
  const std::string array = read.substr(0, read.find('[') + 1);
  if (array.empty()) return "";
  const unsigned reader = conflict.first_writes ? thread_of(conflict.second_agent, conflict.second_epoch)
                                                : thread_of(conflict.first_agent, conflict.first_epoch);
  const uint32_t* const known = clocks_->counts(threads_[reader].known);
  const Shadow& shadow = shadows_[conflict.block];
  const std::size_t cells = shadow.whole.size() * kChunkCells;
  // A slot, unlike an element, is filled by several threads, and all of it has landed.
  std::string slot;
  std::set<unsigned> writers;
  bool has_landed = false;
  const auto is_found = [&] { return has_landed && writers.size() > 1; };
  for (std::size_t i = 0; i < cells; i += shadow.is_split[i / kChunkCells] ? 1 : kChunkCells) {
    const std::string element = slot_of_byte(i * kCellBytes);
    if (element != slot) {
      if (is_found()) break;
      slot = element, writers.clear();
      has_landed = element != read && element.compare(0, array.size(), array) == 0;
    }
    const Cell& cell = shadow.cell(i);
    const bool is_stored = cell.writer < first_thread_queue_;  // as what lies outside a matrix
    if (!has_landed || is_stored) continue;
    has_landed = cell.write_epoch && !cell.reads.lanes && known[cell.writer] >= cell.write_epoch;
    writers.insert(thread_of(cell.writer, cell.write_epoch));
  }
  return is_found() ? slot : "";
}

bool RaceChecker::may_write_before_issue(const Conflict& conflict) const {
  const unsigned issued = conflict.second_agent;
  if (!conflict.first_writes || conflict.first_agent >= thread_count_ || issued < first_pool_agent_ ||
      issued >= first_thread_queue_)
    return false;
  const Issue& issue = issues_of_pool_[issued - first_pool_agent_][conflict.second_epoch - 1];
  return !issue.epochs.empty() && conflict.first_epoch <= issue.epochs[conflict.first_agent];
}

/// What a report says of a conflict's two accesses.
struct RaceChecker::Words {
  OwnLine first, second;
  std::string first_what, second_what;  ///< "TMA load"
  std::string operand;                  ///< that both lines name
  /// Who completes on a barrier, or waits for it, uses it.
  bool is_of_barrier() const { return first_what == "mbarrier.init" || second_what == "mbarrier.init"; }
  const char* verb(bool writes) const { return writes ? "writes" : is_of_barrier() ? "uses" : "reads"; }
};

RaceChecker::Words RaceChecker::words_of(const Conflict& conflict) const {
  Words words;
  words.first = own_line_of(conflict.first_site), words.second = own_line_of(conflict.second_site);
  for (OwnLine* const line : {&words.first, &words.second})
    std::erase_if(line->operands, [&](const std::string& operand) {
      return holds_byte_ && !holds_byte_(operand, conflict.block, conflict.offset);
    });
  words.operand = shared_operand(words.first, words.second);
  words.first_what = what_is_done(conflict.first_site, conflict.first_writes);
  words.second_what = what_is_done(conflict.second_site, conflict.second_writes);
  return words;
}

/// Lives no longer than the conflict.
RaceChecker::Unordered RaceChecker::unordered_of(const Conflict& conflict, const Words& words) const {
  const unsigned writer = conflict.first_writes ? conflict.first_agent : conflict.second_agent;
  const Cell& cell = shadows_[conflict.block].cell(conflict.offset / kCellBytes);
  return {
      .first = thread_of(conflict.first_agent, conflict.first_epoch),
      .second = thread_of(conflict.second_agent, conflict.second_epoch),
      .first_epoch = epoch_of(conflict.first_agent, conflict.first_epoch),
      .second_epoch = epoch_of(conflict.second_agent, conflict.second_epoch),
      .first_is_operation = conflict.first_agent >= thread_count_,
      .second_is_operation = conflict.second_agent >= thread_count_,
      .reads_early = conflict.why == Why::early_read ||
                     (conflict.why == Why::early_read_later && !conflict.second_only_relies),
      .first_writes = conflict.first_writes,
      .are_writes = conflict.why == Why::two_writes,
      .is_one_line = is_same_line(conflict.first_site, conflict.second_site),
      .overwrites = conflict.why == Why::overwritten,
      .lacks_fence = conflict.why == Why::no_proxy_fence,
      .is_unread = !cell.reads.lanes,
      .is_rewritten = (conflict.first_writes ? cell.write_epoch_before : cell.write_epoch) != 0,
      .first_what = words.first_what,
      .second_what = words.second_what,
      .note_of_writer = writer >= thread_count_ ? note_of_agent_[writer - thread_count_] : "",
      .offset = conflict.offset,
      .block = conflict.block,
      .last_read_there =
          [&](unsigned thread) {
            return last_read_at(conflict.first_site, conflict.block, conflict.offset, thread);
          },
      .reads_of_other_warps =
          [&] {
            return reads_of_other_warps(conflict.first_writes ? conflict.second_site : conflict.first_site,
                                        conflict.block);
          },
      .landed_and_unread = [&] { return landed_and_unread(conflict); },
      .may_write_before_issue = may_write_before_issue(conflict),
  };
}

/// What stands behind the first two lines of a report: why, or what would help.
std::string RaceChecker::advice_of(const Conflict& conflict, const Words& words,
                                   const std::string& why) const {
  const unsigned first_thread = thread_of(conflict.first_agent, conflict.first_epoch),
                 second_thread = thread_of(conflict.second_agent, conflict.second_epoch);
  const bool is_one_line = is_same_line(conflict.first_site, conflict.second_site);
  std::string text;
  if (conflict.why == Why::two_writes)
    text += first_thread == second_thread
                ? ": both of " + describe_(first_thread)
                : ": of " + describe_(first_thread) + " and " + describe_(second_thread);
  if (!why.empty()) text += ": " + why;
  // As in global memory. A store_async is a store, too.
  const bool are_stores = conflict.first_agent >= thread_count_
                              ? words.first_what == "store_async" && words.second_what == words.first_what
                              : conflict.second_agent < thread_count_;
  if (explain_unordered_ && why.empty() && conflict.why == Why::two_writes && first_thread != second_thread &&
      are_stores && is_one_line)
    text += ": should each store elements of its own?";
  if (conflict.first_writes != conflict.second_writes &&
      !((conflict.first_site | conflict.second_site) & kEngineSite) && is_one_line)
    text +=
        "; of an element that the line updates for several threads, as count[i]++ does, no barrier makes "
        "that right, but atomicAdd";
  return text;
}

/// A line for each access: who, as what, where.
std::string RaceChecker::both_accesses(const Conflict& conflict, const Words& words) const {
  // What reads by itself may have been issued before the write, and reads on until somebody has waited for
  // it. A copy that is read before it lands may have been issued before the read.
  const bool second_goes_on =
      conflict.second_agent >= thread_count_ &&
      ((conflict.first_writes && !conflict.second_writes) || conflict.why == Why::early_read);
  const char* const use = words.is_of_barrier() ? "a use of the barrier" : nullptr;
  return fmt::format("\n  {} {} at {}\n  {} {} at {}", second_goes_on ? "both:" : "first",
                     describe_agent(conflict.first_agent, conflict.first_epoch, conflict.first_writes,
                                    conflict.first_site, conflict.first_writes ? nullptr : use),
                     describe_site(conflict.first_site), second_goes_on ? "and  " : "then ",
                     describe_agent(conflict.second_agent, conflict.second_epoch, conflict.second_writes,
                                    conflict.second_site, conflict.second_writes ? nullptr : use),
                     describe_site(conflict.second_site));
}

/// One of the two lines reaches out of the array that it names: there is no order that was meant.
std::string RaceChecker::left_array(const Conflict& conflict, const Words& words) const {
  if (!explain_left_) return "";
  const std::string first =
      explain_left_(words.first, words.first_what, conflict.first_writes, conflict.offset);
  return !first.empty()
             ? first
             : explain_left_(words.second, words.second_what, conflict.second_writes, conflict.offset);
}

namespace {

/// Of those who call the line, the outermost in a function that the other line lies in, too: there the order
/// of both can be seen. Else the outermost.
std::string caller_beside(const OwnLine& line, const OwnLine& other) {
  for (auto call = line.calls.rbegin(); call != line.calls.rend(); ++call)
    if (std::any_of(other.calls.begin(), other.calls.end(),
                    [&](const OwnLine::Call& one) { return one.function == call->function; }))
      return call->place;
  return line.caller;
}

}  // namespace

void RaceChecker::report(Conflict conflict) {
  if (only_early_reads_ && conflict.why != Why::early_read_later) return;
  reported_ = true;
  const bool unordered = conflict.why == Why::unordered || conflict.why == Why::unordered_async;
  if (unordered && is_same_line(conflict.write_before, conflict.first_site))
    conflict.why = conflict.why == Why::unordered ? Why::overwritten : Why::overwritten_or_before;
  const Words words = words_of(conflict);
  std::string what_happened = describe(conflict), why;
  why = left_array(conflict, words);
  if (explain_unordered_ && why.empty()) {
    Unordered pair = unordered_of(conflict, words);
    pair.retell = [&](const char* told) { what_happened = told; };
    why = explain_unordered_(pair);
  }
  // Several calls of one copying function look alike.
  const auto place_of = [](const OwnLine& line, const std::string& what, const OwnLine& other) {
    if (line.caller.empty() || (what != "cp.async" && what != "store")) return line.place;
    const std::string caller = caller_beside(line, other);
    return caller == line.place ? line.place : line.place + ", called from " + caller + ",";
  };
  const std::string name = name_of_byte(conflict.offset);
  const bool needs_no_operand = words.operand.empty() || name.rfind(words.operand, 0) == 0;
  report_(fmt::format("race in shared memory of block {} at {}{}: {}\n  {} {} ({}), {} {} ({})",
                      conflict.block, name, needs_no_operand ? "" : " (" + words.operand + ")", what_happened,
                      place_of(words.first, words.first_what, words.second),
                      words.verb(conflict.first_writes), words.first_what,
                      place_of(words.second, words.second_what, words.first),
                      words.verb(conflict.second_writes), words.second_what) +
          advice_of(conflict, words, why) + both_accesses(conflict, words));
}

}  // namespace cpu_device
