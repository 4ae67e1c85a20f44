/// @file
/// Runs the fibers of a cluster one after the other, in the order that the schedule says.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <iterator>
#include <mutex>
#include <set>
#include <stdexcept>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/kernel/built_in_variables.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_registers.hpp"
#include "common/cpu_device/kernel/engine_tma.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/reports/array_bounds.hpp"
#include "common/cpu_device/kernel/reports/launch_shape.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/hooks.hpp"

constinit thread_local cpu_device::Uint3 threadIdx, blockIdx;
constinit thread_local cpu_device::Dim3 blockDim, gridDim;

namespace cpu_device {
namespace {

/// Sweeps over all polling threads in which nothing changes, before they count as waiting for ever.
constexpr unsigned kIdleSweeps = 200;
/// Where threads poll by plain loads, which may do other work, too: seconds of processor time.
constexpr double kIdleTime = 2;
/// Context switches of a cluster in which no data moves and no thread ends, before it counts as running for
/// ever. A correct kernel with 1024 threads reaches 20,000 barriers without a copy until then.
constexpr uint64_t kSwitchBudget = 20'000'000;

/// Of this OS thread, in seconds.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Of a thread that exits: has it waited for mbarriers, as who fills a slot does, and arrived at none?
std::string arrivals_not_made(const Thread& thread) {
  const auto& all = thread.block->mbarriers;
  const Mbarrier* const seen = thread.last_seen.barrier;
  if (!seen ||
      std::any_of(all.begin(), all.end(), [&](const auto& one) { return has_ever_arrived(*one, thread); }))
    return "";
  return ", nor arrived at any mbarrier, though it waited for " + name_of(*seen) +
         ": does its loop end before the waits, and the arrivals, for its last copies?";
}

/// What its last wait for cp.async has to do with the group that it did not wait for.
std::string why_not_waited_for(const Thread& thread) {
  if (thread.copy_groups_at_wait == 0)
    return ": it has not waited for cp.async at all" + arrivals_not_made(thread);
  if (thread.copy_groups_at_wait < thread.last_copy_group) return ": it commits after its last wait";
  const std::string wait = ": its last wait (" + own_place(thread.last_copy_wait_at) + ") leaves out ";
  return wait +
         (thread.copy_groups_left == 1
              ? std::string("the newest group, with its last copies, because no commit stands between that "
                            "group and the wait")
              : print("the newest %u groups, with its last copies, because too few commits stand between "
                      "those and the wait",
                      thread.copy_groups_left)) +
         ": wait with a smaller count, after the last copies for all groups (a wait of 0), or commit in each "
         "round, also an empty group";
}

/// Of copies that were never committed: the wait that was meant for them.
std::string useless_wait(const Thread& thread) {
  if (!thread.uncommitted_wait_at.line) return "";
  return ": its wait (" + own_place(thread.uncommitted_wait_at) +
         ") waits for none of them: a commit must come before it";
}

/// Throws for work that the exiting thread has left unfinished.
void check_nothing_left_in_flight(Thread& thread) {
  if (thread.open_copies && !thread.open_copies->copies.empty()) {
    thread.cluster.fail(
        thread, "the thread exits with cp.async copies that were never committed" + useless_wait(thread),
        thread.open_copies->copies.front().where);
  }
  if (thread.last_copy_group > thread.waited_copy_groups) {
    thread.cluster.fail(
        thread, "the thread exits with cp.async groups that it never waited for" + why_not_waited_for(thread),
        thread.last_copy_at);
  }
  if (!thread.wgmma_not_waited_for.empty()) {
    thread.cluster.fail(thread,
                        thread.wgmma_committed < thread.wgmma_issued
                            ? "the thread exits with wgmma operations that were never committed"
                            : "the thread exits with wgmma operations that it never waited for",
                        thread.last_wgmma_at);
  }
  check_stores_at_exit(thread);
  check_register_changes(thread);
  check_aligned_at_exit(thread);
  check_accumulators_at_exit(thread);
}

}  // namespace

constinit thread_local const ThreadIds* current_thread_ids = nullptr;
constinit thread_local Thread* current_thread = nullptr;

Thread& this_thread(Location where) {
  if (!current_thread) {
    throw std::logic_error("a device operation was called outside of a kernel, at " + to_string(where));
  }
  current_thread->last_call = where;
  return *current_thread;
}

Thread::Thread(Cluster& cluster) : cluster(cluster), fiber(&Cluster::fiber_main, this) {}

Cluster::Cluster(const KernelLaunch& kernel, const std::function<void()>& thread_body, const Options& options,
                 bool note_global_accesses, GridOrder* grid_order, SharedLayout& layout)
    : kernel_(kernel),
      thread_body_(thread_body),
      options_(options),
      is_instrumented_(instrumented()),
      notes_global_accesses_(note_global_accesses),
      grid_order_(grid_order),
      layout_(layout),
      cluster_count_(kernel.grid.count() / kernel.cluster.count()) {
  const auto blocks = static_cast<unsigned>(kernel_.cluster.count());
  const auto threads = static_cast<unsigned>(kernel_.block.count());
  for (unsigned b = 0; b < blocks; ++b)
    blocks_.push_back(std::make_unique<Block>(kernel_.shared_bytes, layout_.capacity()));
  for (unsigned t = 0; t < blocks * threads; ++t) threads_.push_back(std::make_unique<Thread>(*this));
  ready_.resize((threads_.size() + 63) / 64);
  race_checker_ = std::make_unique<RaceChecker>(
      [this](const std::string& race) { record_race(current_thread, race); },
      [this](unsigned thread) { return describe(*threads_[thread]); },
      [this](const RaceChecker::Unordered& accesses) {
        return explain_hand_over(*threads_[accesses.first], *threads_[accesses.second], accesses);
      });
  race_checker_->name_bytes([this](size_t offset) { return layout_.name_of(offset); });
  race_checker_->match_operands([this](const std::string& operand, unsigned block, size_t offset) {
    return may_hold(*blocks_[block], operand, offset);
  });
  race_checker_->explain_left(
      [this](const OwnLine& line, const std::string& what, bool writes, size_t offset) {
        std::vector<uint32_t> barriers;
        for (const auto& barrier : blocks_[0]->mbarriers) barriers.push_back(barrier->offset);
        return explain_left_array(layout_, layout_.end(), {line, what, writes, offset, offset, barriers});
      });
}

Cluster::~Cluster() {
  closing_ = true;
  for (auto& thread : threads_) thread->is_in_hook ? thread->fiber.forget() : thread->fiber.resume();
}

/// Who should have arrived may be threads that the block does not have.
std::string Cluster::with_missing_threads(const std::string& deadlock) const {
  return deadlock.find("nobody has ever arrived there") == deadlock.npos
             ? deadlock
             : with_few_threads(kernel_, deadlock);
}

// --- one cluster ------------------------------------------------------------------------------------------

void Cluster::prepare(uint64_t index) {
  const Dim3& grid = kernel_.grid;
  const Dim3& cluster = kernel_.cluster;
  const uint64_t clusters_x = grid.x / cluster.x, clusters_y = grid.y / cluster.y;
  const Uint3 first{static_cast<unsigned>(index % clusters_x) * cluster.x,
                    static_cast<unsigned>(index / clusters_x % clusters_y) * cluster.y,
                    static_cast<unsigned>(index / clusters_x / clusters_y) * cluster.z};

  random_ = Random(options_.schedule.seed, index);
  live_ = static_cast<unsigned>(threads_.size());
  last_picked_ = live_ - 1;
  progress_ = progress_seen_ = switches_since_work_ = 0;
  idle_sweeps_ = 0;
  cluster_barrier_ = {};
  begin_ = std::chrono::steady_clock::now();
  has_warned_of_passes_ = false;

  const auto threads_per_block = static_cast<unsigned>(kernel_.block.count());
  for (unsigned rank = 0; rank < blocks_.size(); ++rank) {
    prepare_block(*blocks_[rank], rank,
                  {first.x + rank % cluster.x, first.y + rank / cluster.x % cluster.y,
                   first.z + rank / cluster.x / cluster.y});
  }

  races_on_ = options_.check_races && is_instrumented_;
  counting_ = options_.count && is_instrumented_ && is_sampled(index, cluster_count_);
  clock_on_ = index == 0;
  observed_ = is_instrumented_ &&
              (races_on_ || counting_ || clock_on_ || notes_global_accesses_ || blocks_.size() > 1);
  if (races_on_) {
    race_checker_->begin(static_cast<unsigned>(blocks_.size()), threads_per_block, layout_.capacity());
    if (grid_order_) grid_order_->begin_cluster();
  }
  if (counting_) {
    access_counter_.begin(static_cast<unsigned>(blocks_.size() * blocks_[0]->warps.size()));
    sampled_blocks_ += blocks_.size();
  }
  if (clock_on_) clock_.begin(static_cast<unsigned>(blocks_.size()), threads_per_block, options_.trace);
  if (observed_) {
    Observers& to = observers();
    to.races = races();
    to.counter = counting_ ? &access_counter_ : nullptr;
    to.clock = clock();
    to.global = global_accesses();
    to.grid_order = grid_order();
    to.guard = &guard_;
    to.blocks_that_left = 0;
    to.is_cooperative = kernel_.cooperative;
    to.early_blocks = kernel_.pdl && !kernel_.cooperative ? (1u << blocks_.size()) - 1 : 0;
    windows_.clear();
    for (auto& block : blocks_) windows_.push_back({block->shared.generic(), block->shared.capacity()});
    to.shared = {windows_.data(), static_cast<unsigned>(windows_.size())};
    to.layout = layout_.has_variables() ? &layout_ : nullptr;
  }
}

void Cluster::prepare_block(Block& block, unsigned rank, Uint3 index) {
  const auto threads = static_cast<unsigned>(kernel_.block.count());
  block.ids = {index, kernel_.block, kernel_.grid, kernel_.cluster, rank, threads};
  block.ids.cooperative = kernel_.cooperative;
  block.live = threads;
  block.is_early = kernel_.pdl;
  block.shared.poison();
  block.shared.grow(layout_.end());
  block.mbarriers.clear();
  block.mappings.clear();
  block.passed.clear();
  for (NamedBarrier& barrier : block.barriers) barrier = {};
  const unsigned warps = (threads + kWarpLanes - 1) / kWarpLanes;
  block.warps.resize(warps);
  for (unsigned w = 0; w < warps; ++w) {
    Warp& warp = block.warps[w];
    warp.index = w;
    warp.number = rank * warps + w;
    warp.block = &block;
    warp.present = warp.live = 0;
    warp.collectives.clear();
    warp.gatherings.clear();
    warp.aligned_steps.clear();
    warp.forgotten_aligned_steps = 0;
    warp.copy_instructions.clear();
    warp.registers = 0;
    warp.wanted_registers = warp.register_changes = 0;
  }
  block.blocks_on_sm = block.free_registers = 0;
  block.waiting_for_registers.clear();
  // Warpgroups refer to accumulators of threads: forget them before the threads forget those.
  block.warpgroups.clear();
  block.warpgroups.resize((threads + kWarpgroupThreads - 1) / kWarpgroupThreads);
  for (unsigned t = 0; t < threads; ++t) prepare_thread(*threads_[rank * threads + t], block, t);
}

size_t Cluster::place_of(SharedVariable& variable, Location where) {
  const unsigned number = variable.number.load(std::memory_order_relaxed);
  if (number < places_.size() && places_[number]) return places_[number] - 1;
  const size_t offset = layout_.place(variable);
  if (offset == layout_.capacity())
    fail(*current_thread,
         print("the __shared__ variables of the kernel have more than %zu bytes, of which %s has %zu: "
               "larger ones must be dynamic shared memory",
               SharedLayout::kMaxStaticBytes, variable.name, variable.bytes),
         where);
  for (auto& block : blocks_) block->shared.grow(layout_.end());
  const unsigned fresh = variable.number;
  if (places_.size() <= fresh) places_.resize(fresh + 1);
  places_[fresh] = offset + 1;
  return offset;
}

void Cluster::prepare_thread(Thread& thread, Block& block, unsigned rank) {
  const Dim3& shape = kernel_.block;
  thread.ids = {{rank % shape.x, rank / shape.x % shape.y, rank / shape.x / shape.y}, rank, &block.ids};
  thread.block = &block;
  thread.warp = &block.warps[rank / kWarpLanes];
  thread.lane = rank % kWarpLanes;
  thread.warp->lanes[thread.lane] = &thread;
  thread.warp->present |= 1u << thread.lane;
  thread.warp->live = thread.warp->present;
  thread.number = block.ids.rank_in_cluster * block.ids.threads + rank;
  thread.started = thread.done = false;
  thread.synchronised = true;
  thread.wait = {};
  thread.last_call = {};
  const Stack stack = thread.fiber.stack();
  const auto* stack_begin = reinterpret_cast<const std::byte*>(stack.bottom);
  thread.observed = {thread.number, block.ids.rank_in_cluster, thread.warp->number, thread.lane,
                     stack_begin,   stack_begin + stack.bytes};

  thread.open_copies.reset();
  thread.committed_copy_groups = thread.landed_copy_groups = 0;
  thread.waited_copy_groups = thread.last_copy_group = thread.copy_groups_at_wait = 0;
  thread.uncommitted_wait_at = {};
  thread.landed_groups.clear();
  thread.copies_since_convergence = 0;
  thread.store_groups.clear();
  thread.forgotten_store_groups = thread.read_store_groups_known = 0;
  thread.wgmma_issued = thread.wgmma_committed = thread.wgmma_committed_groups = thread.wgmma_fences =
      thread.wgmma_waited_for = 0;
  thread.aligned_steps = 0;
  thread.last_seen = {};
  thread.seen_before.clear();
  thread.places_in_rings.clear();
  thread.last_loads.clear();
  thread.last_stores.clear();
  thread.block_barriers.clear();
  thread.last_wgmma_wait = thread.wgmma_wait_before = {};
  thread.proxy_fences.clear();
  thread.last_store_wait = {};
  thread.last_store_commit = {};
  thread.mbarrier_waits = 0;
  thread.arrival_in_flight = {};
  thread.cluster_arrival = {};
  thread.has_waited_since_wgmma = false;
  thread.accumulators.clear();
  thread.wgmma_not_waited_for.clear();
  ready_[thread.number / 64] |= uint64_t{1} << thread.number % 64;
}

void Cluster::run(uint64_t index) {
  prepare(index);
  while (live_ && !failed()) {
    if (options_.schedule.landing == Landing::random && !pending_.empty() && random_.one_in(32)) {
      land(random_.below(pending_.size()));
    }
    if (Thread* thread = pick()) {
      resume(*thread);
      if (++switches_since_work_ > kSwitchBudget) {
        record_failure(
            thread,
            print("the kernel runs for ever: %llu context switches, and no data moved and no thread "
                  "ended",
                  static_cast<unsigned long long>(kSwitchBudget)) +
                passes_of(*blocks_.front()),
            {});
      }
    } else if (!let_time_pass()) {
      break;
    }
  }
  if (failed()) {
    abandon_threads();
  } else {
    finish();
  }
  forget_endless_loop(this);
  if (observed_) observers() = {};
}

/// What nobody waited for still happens, and the figures are complete.
void Cluster::finish() {
  while (!pending_.empty()) land(0);
  for (auto& block : blocks_) converged(*block);
  counters_.blocks += blocks_.size();
  counters_.threads += threads_.size();
  if (clock_on_) {
    const BlockTime time = clock_.block_time(0);
    counters_.cycles = time.length;
    counters_.copy_cycles = time.copy;
    counters_.math_cycles = time.math;
    counters_.overlap_cycles = time.overlap;
    if (options_.trace) trace_ = clock_.spans();
  }
}

/// Every fiber that is inside the kernel unwinds its stack, so that the objects on it are destroyed.
void Cluster::abandon_threads() {
  abandoning_ = true;
  for (auto& thread : threads_) {
    if (thread->started && !thread->done && !thread->is_in_hook) resume(*thread);
  }
  abandoning_ = false;
  pending_.clear();
  arrivals_in_flight_ = 0;
  polling_.clear();
}

// --- which thread runs ------------------------------------------------------------------------------------

int Cluster::next_ready(unsigned from) const {
  const auto words = static_cast<unsigned>(ready_.size());
  unsigned word = from / 64;
  uint64_t bits = ready_[word] & (~uint64_t{0} << from % 64);
  for (unsigned step = 0; step <= words; ++step) {
    if (bits) return static_cast<int>(word * 64 + static_cast<unsigned>(__builtin_ctzll(bits)));
    word = word + 1 == words ? 0 : word + 1;
    bits = ready_[word];
  }
  return -1;
}

int Cluster::last_ready() const {
  for (size_t word = ready_.size(); word-- > 0;) {
    if (ready_[word])
      return static_cast<int>(word * 64 + 63 - static_cast<size_t>(__builtin_clzll(ready_[word])));
  }
  return -1;
}

Thread* Cluster::pick() {
  const auto count = static_cast<unsigned>(threads_.size());
  int chosen = -1;
  switch (options_.schedule.order) {
    case Order::lowest_first:
      chosen = next_ready(0);
      break;
    case Order::highest_first:
      chosen = last_ready();
      break;
    case Order::random:
      chosen = next_ready(static_cast<unsigned>(random_.below(count)));
      break;
    case Order::round_robin:
      chosen = next_ready(last_picked_ + 1 < count ? last_picked_ + 1 : 0);
      break;
  }
  if (chosen < 0) return nullptr;
  last_picked_ = static_cast<unsigned>(chosen);
  return threads_[last_picked_].get();
}

void Cluster::resume(Thread& thread) {
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // nobody else counts
  thread.started = true;
  thread.passes = 0;
  current_thread = &thread;
  current_thread_ids = &thread.ids;
  set_built_in_variables(thread.ids);
  turns_of_threads.store(turns_of_threads.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (observed_) observers().running = &thread.observed;
  thread.fiber.resume();
  if (observed_) observers().running = nullptr;
  current_thread = nullptr;
  current_thread_ids = nullptr;
}

/// Nobody can run: something that is in flight lands, or those who poll look again.
/// @return false if neither would help.
bool Cluster::let_time_pass() {
  const bool has_loops =
      std::any_of(polling_.begin(), polling_.end(), [](const Thread* thread) { return thread->is_in_hook; });
  const uint64_t stores = has_loops ? observers().stores : 0;
  const bool nothing_changed = progress_ == progress_seen_ && stores == stores_seen_;
  if (polling_.empty() || nothing_changed) {
    if (!pending_.empty()) {
      land(next_to_land());
      if (polling_.empty()) return true;
    } else if (polling_.empty()) {
      record_failure(
          nullptr,
          with_missing_threads(describe_deadlock(*this, "no thread can run and nothing is in flight")), {});
      return false;
    } else if (const double now = processor_time();
               ++idle_sweeps_ > kIdleSweeps && kernel_.let_others_run && kernel_.let_others_run()) {
      idle_sweeps_ = 0;
    } else if (idle_sweeps_ == 1) {
      idle_since_ = now;
    } else if (idle_sweeps_ > kIdleSweeps && (!has_loops || now - idle_since_ > kIdleTime)) {
      name_loops_of_loads();
      record_failure(
          nullptr,
          with_missing_threads(describe_deadlock(*this, "every running thread polls and nothing changes")),
          {});
      return false;
    }
  } else {
    idle_sweeps_ = 0;
  }
  progress_seen_ = progress_;
  stores_seen_ = stores;
  for (Thread* thread : polling_) wake(*thread);
  polling_.clear();
  return true;
}

void wait_for_a_store(const void* return_address) {
  constexpr unsigned kPatienceThen = 64;
  if (!current_thread) return;  // a host function
  Thread& thread = *current_thread;
  LoopOfLoads& loop = thread.observed.loop;
  loop.looks += loop.count;
  if (!thread.cluster.failed()) {
    thread.is_in_hook = true;
    thread.cluster.yield_poll(thread, {WaitKind::poll, nullptr, 0, "a load", {"", 0, return_address}});
    thread.is_in_hook = false;
  }
  observers().running = nullptr;  // the hook goes on
  loop.looks -= loop.count = LoopOfLoads::kPatience - kPatienceThen;
}

/// Looking for lines takes time, so only a report asks.
void Cluster::name_loops_of_loads() {
  static std::mutex mutex;
  static auto& files = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  for (Thread* thread : polling_) {
    if (!thread->is_in_hook) continue;
    const std::string place = own_place(thread->wait.where);
    const size_t colon = place.rfind(':');
    thread->wait.where = {files.insert(place.substr(0, colon)).first->c_str(),
                          static_cast<unsigned>(std::atoi(place.c_str() + colon + 1)), nullptr, nullptr};
    thread->loop_of_loads =
        print("a loop that loads the same again and again, %llu times, and finds no change",
              static_cast<unsigned long long>(thread->observed.loop.looks + thread->observed.loop.count));
    thread->wait.what = thread->loop_of_loads.c_str();
  }
}

void Cluster::park(Thread& thread, Wait wait) {
  if (unwinds()) return;
  thread.wait = wait;
  thread.synchronised = true;
  ready_[thread.number / 64] &= ~(uint64_t{1} << thread.number % 64);
  thread.fiber.suspend();
  if (abandoning_) throw Abandoned{};
}

void Cluster::wake(Thread& thread) {
  thread.wait = {};
  ready_[thread.number / 64] |= uint64_t{1} << thread.number % 64;
}

void Cluster::jitter(Thread& thread) {
  if (options_.schedule.order != Order::random || !random_.one_in(4)) return;
  if (unwinds()) return;
  thread.fiber.suspend();
  if (abandoning_) throw Abandoned{};
}

void Cluster::yield_poll(Thread& thread, Wait wait) {
  if (unwinds()) return;
  polling_.push_back(&thread);
  park(thread, wait);
}

void exit_thread(Location where) {
  this_thread(where);
  throw Exits{};
}

// --- the life of a thread -----------------------------------------------------------------------------

[[gnu::noinline]] void poison_local_variables() {
  constexpr size_t kBytes = 8 * 1024;  // the accumulators of a thread are at most 1 KiB
  uint32_t frames[kBytes / sizeof(uint32_t)];
  std::fill(std::begin(frames), std::end(frames), kUnwrittenLocal);
  asm volatile("" ::"r"(frames) : "memory");  // or the compiler would leave it out
}

void Cluster::fiber_main(void* argument) {
  auto& thread = *static_cast<Thread*>(argument);
  thread.cluster.thread_main(thread);
}

/// A fiber runs the same thread of one cluster after the other.
void Cluster::thread_main(Thread& thread) {
  thread.body_frame = __builtin_frame_address(0);
  while (!closing_) {
    try {
      try {
        thread_body_();
      } catch (const Exits&) {
      }
      thread_exits(thread);
    } catch (const Abandoned&) {
    } catch (const std::exception& error) {
      record_failure(&thread, std::string("an exception left the kernel: ") + error.what(), {});
    } catch (...) {
      record_failure(&thread, "an exception left the kernel", {});
    }
    thread.done = true;
    thread.fiber.suspend();
  }
}

void Cluster::thread_exits(Thread& thread) {
  check_nothing_left_in_flight(thread);
  Block& block = *thread.block;
  thread.done = true;
  ready_[thread.number / 64] &= ~(uint64_t{1} << thread.number % 64);
  thread.warp->live &= ~(1u << thread.lane);
  --live_;
  --block.live;
  count_work();
  const NamedBarrier& barrier = block.barriers[0];
  if (barrier.arrived && !barrier.expected) {
    fail(thread,
         "the thread exits while others of its block wait in __syncthreads at " + to_string(barrier.where),
         {});
  }
  complete_collectives_without(*this, thread);
  if (block.live == 0) block_exits(block);
  complete_cluster_barrier(*this);
  leave_if_failed();
}

/// Of plain loads and atomic operations. They say themselves which threads did what.
void Cluster::report_suspicions(const Block& block) {
  if (!races() || failed()) return;
  const Unobserved unobserved;  // a report may use functions of headers that are instrumented
  Thread* const last = std::exchange(current_thread, nullptr);
  races()->report_suspicions(block.ids.rank_in_cluster);
  if (grid_order_)
    for (const std::string& race : {grid_order_->changed_by_last_store(), grid_order_->suspicion()})
      if (!race.empty() && !failed()) record_failure(nullptr, race, {});
  current_thread = last;
}

/// Nobody may touch the shared memory of a block that has exited.
void Cluster::block_exits(Block& block) {
  block.last_call = current_thread->last_call;
  for (Warp& warp : block.warps) flush_copy_instructions(warp);
  for (auto& operation : pending_) {
    if (operation->touched_block() != &block) continue;
    const Block& from = *operation->issuer->block;
    operation->show_early_readers(*this);
    leave_if_failed();
    std::string rule = operation->abandoned();
    if (&from != &block) {
      rule = print("block %u of the cluster left while this %s of block %u was in flight to it: ",
                   block.ids.rank_in_cluster, operation->what(), from.ids.rank_in_cluster) +
             operation->missing();
    }
    record_failure(operation->issuer, rule, operation->where);
    leave_if_failed();
  }
  check_mappings_at_exit(block);
  report_suspicions(block);
  if (RaceChecker* races = this->races()) races->leave(block.ids.rank_in_cluster);
  leave_if_failed();
  check_bytes_at_exit(*current_thread, block);
  if (options_.trace && block.ids.rank_in_cluster == 0) {
    mbarriers_ = records_of_mbarriers(block);
    registers_ = registers_asked_for(block);
  }
  for (const auto& barrier : block.mbarriers)
    if (other_end(*barrier) && barrier->is_full)
      counters_.slot_fills = std::max(counters_.slot_fills, barrier->phase);
  note_unread_fills(block);
  block.operands.clear();
  block.staged_by.clear();
  block.shared.poison();
  block.mbarriers.clear();
  if (observed_ && !kernel_.cooperative) observers().blocks_that_left |= 1u << block.ids.rank_in_cluster;
}

void Cluster::note_unread_fills(const Block& block) {
  const Unobserved unobserved;
  const Uint3 at = block.ids.index;
  const Dim3 grid = block.ids.grid_dim;
  moved_tiles_.note_unread_fills((uint64_t{at.z} * grid.y + at.y) * grid.x + at.x,
                                 describe_unread_fills(block));
  moved_tiles_.note_operands(block.operands);
}

/// Who asked for a pointer to the shared memory of this block, and has not met it since, may still use it.
void Cluster::check_mappings_at_exit(const Block& block) {
  for (const Block::Mapping& mapping : block.mappings) {
    if (!mapping.by || !mapping.by->block->live) continue;
    record_failure(
        mapping.by,
        print("block %u of the cluster left while block %u may still use the pointer that it has to "
              "its shared memory: ",
              block.ids.rank_in_cluster, mapping.by->block->ids.rank_in_cluster) +
            explain_exit(block),
        mapping.where);
    leave_if_failed();
  }
}

}  // namespace cpu_device
