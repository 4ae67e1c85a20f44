/// @file
/// Enqueues operations and runs them: those that the host needs, and those that the schedule picks.
#include "common/cpu_device/streams/stream_engine.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/hidden_memory.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/kernel_writes.hpp"

namespace cpu_device {
namespace {
constexpr size_t kMostHostFunctions = 256;  ///< that are remembered when they have run
}

StreamEngine& streams() {
  // Never destroyed: static objects of a program may free their buffers after this file's would be gone.
  static auto& engine = *new StreamEngine;
  return engine;
}

void fail(const std::string& rule, const std::string& places) {
  throw Failure(rule + "; schedule " + options().schedule.explained_for_streams() + places);
}

bool StreamEngine::is_checking() const {
  if (!options().check_streams) return false;
  const bool uses_per_thread = std::any_of(std::begin(devices_), std::end(devices_),
                                           [](const Device& device) { return !device.per_thread.empty(); });
  return !streams_.empty() || !pending_.empty() || uses_per_thread;
}

// --- enqueueing -------------------------------------------------------------------------------------------

std::vector<OperationPointer> StreamEngine::order_of_next(const CUstream_st& stream) {
  std::vector<OperationPointer> after;
  if (stream.last) after.push_back(stream.last);
  Device& home = devices_[stream.device];
  if (stream.is_legacy) {
    for (const CUstream_st* other : streams_) {
      if (other->device == stream.device && other->is_blocking && other->last) after.push_back(other->last);
    }
    for (const auto& [thread, other] : home.per_thread) {
      if (other.last) after.push_back(other.last);
    }
    after.insert(after.end(), home.last_of_destroyed_blocking.begin(), home.last_of_destroyed_blocking.end());
  } else if (stream.is_blocking && home.last_on_legacy) {
    after.push_back(home.last_on_legacy);
  }
  return after;
}

OrderClock StreamEngine::known_to_next(const CUstream_st& stream) {
  OrderClock known = host_;
  for (const OperationPointer& operation : order_of_next(stream)) known.join(operation->clock);
  return known;
}

OperationPointer StreamEngine::enqueue(CUstream_st& stream, Work work,
                                       const std::vector<OperationPointer>& after) {
  if (stream.capture) {
    capture_work(stream, std::move(work));
    return nullptr;
  }
  std::vector<OperationPointer> order = order_of_next(stream);
  order.insert(order.end(), after.begin(), after.end());
  OperationPointer operation = add(stream, std::move(work), std::move(order));
  if (stream.is_legacy) {
    devices_[stream.device].last_on_legacy = operation;
    operation->on_legacy_stream = true;
    // What returns early lands late, where the schedule says so: only what is ordered behind it brings it
    // about.
    if (!operation->collective && !operation->returns_early) run_until_done(operation);
  }
  if (options().schedule.landing == Landing::eager) let_schedule_run();
  return operation;
}

namespace {

/// What a kernel that begins while `kernel` still runs can rely on: what came before `kernel` began.
OrderClock first_step_of(const Operation& kernel) {
  if (kernel.pdl) return kernel.early_clock;
  OrderClock clock = kernel.clock;
  clock.step_back(kernel.lane);
  return clock;
}

}  // namespace

OperationPointer StreamEngine::add(Lane& lane, Work work, std::vector<OperationPointer> after) {
  auto operation = std::make_shared<Operation>();
  static_cast<Work&>(*operation) = std::move(work);
  operation->id = ++last_id_;
  operation->device = lane.device;
  operation->lane = lane.number;
  operation->stream = lane.name;
  operation->stream_origin = lane.origin;
  operation->stream_creators = lane.creators;
  operation->clock = host_;
  operation->starts_after = host_after_;
  operation->not_before_us = host_us_;
  operation->early_clock = host_;
  for (OperationPointer& before : after) {
    operation->clock.join(before->clock);
    operation->early_clock.join(before == lane.last && before->is_kernel() ? first_step_of(*before)
                                                                           : before->clock);
    operation->starts_after.push_back(before->end);
    if (!before->done) operation->after.push_back(std::move(before));
  }
  operation->clock.raise(lane.number, ++ticks_[lane.number]);
  lane.last = operation;
  pending_[operation->id] = operation;
  untimed_.push_back(operation);
  if (operation->enqueued) operation->enqueued(*operation);
  if (operation->watches_source && options().check_streams) remember_source(*operation);
  if (operation->spoils_target) {
    spoil_target(*operation);
    note_download(operation);
  }
  note_queued_for_host(operation);
  return operation;
}

namespace {

/// What a kernel reads with __ldg, nobody may write while it runs, and it neither.
void check_read_only(const Operation& kernel, GlobalAccesses& accesses) {
  for (AccessesOfPlace& place : accesses.read_only.all()) {
    for (const Ranges::Range& read : place.ranges.merged()) {
      for (const Ranges::Range& written : accesses.writes.merged()) {
        if (read.end <= written.begin || written.end <= read.begin) continue;
        const auto* first = reinterpret_cast<const std::byte*>(std::max(read.begin, written.begin));
        const AllocationPointer allocation = streams().memory.find(first);
        fail(fmt::format(
            "{} reads {} with __ldg and writes it itself, both from byte {} on: __ldg is for data "
            "that nobody writes while the kernel runs\n  at {}",
            kernel.describe(), allocation ? allocation->describe() : "memory",
            allocation ? first - allocation->begin : 0, place.describe()));
      }
    }
  }
}

}  // namespace

// --- running ----------------------------------------------------------------------------------------------

bool StreamEngine::can_run(const Operation& operation) const {
  const auto is_done = [](const OperationPointer& before) { return before->done; };
  if (!std::all_of(operation.after.begin(), operation.after.end(), is_done)) return false;
  if (!operation.collective || operation.collective->has_run) return true;
  const StreamCollective& collective = *operation.collective;
  for (unsigned rank = 0; rank < collective.ranks; ++rank) {
    if (!collective.called[rank]) return false;
    const OperationPointer member = collective.members[rank].lock();
    if (member && !std::all_of(member->after.begin(), member->after.end(), is_done)) return false;
  }
  return true;
}

void StreamEngine::let_schedule_run() {
  const Landing landing = options().schedule.landing;
  if (running_ || pending_.empty() || landing == Landing::late) return;
  const auto next_of = [&]() -> OperationPointer {
    std::vector<OperationPointer> ready;
    for (const auto& [id, operation] : pending_) {
      if (operation->put_off || !can_run(*operation)) continue;
      ready.push_back(operation);
      if (landing == Landing::eager) break;
    }
    if (ready.empty()) return nullptr;
    return ready[landing == Landing::eager ? 0 : random_.below(ready.size())];
  };
  uint64_t steps = landing == Landing::eager ? UINT64_MAX : random_.below(4);
  while (steps--) {
    const OperationPointer next = next_of();
    if (!next) return;
    nobody_waits_ = true;
    run(next);
    nobody_waits_ = false;
  }
}

namespace {

/// While it lives, what this OS thread loads and stores is noted, where it is instrumented: by a host
/// function.
class HostAccessesAreNoted {
 public:
  explicit HostAccessesAreNoted(GlobalAccesses& accesses) : before_(observers()) {
    observers() = {};
    observers().global = &accesses;
    observers().running = &thread_;
  }
  ~HostAccessesAreNoted() { observers() = before_; }
  HostAccessesAreNoted(const HostAccessesAreNoted&) = delete;

 private:
  const Observers before_;
  ObservedThread thread_;
};

}  // namespace

void note_given_back(const void* memory, size_t bytes) {
  if (running_host_function() && observers().global) observers().global->given_back.add(memory, bytes);
}

void StreamEngine::check_given_back(const Operation& host_function, const GlobalAccesses& accesses) const {
  const GlobalAccesses::UnwrittenRead& read = accesses.read_of_given_back;
  if (!read.address) return;
  const AllocationPointer allocation = memory.find(read.address);
  fail(fmt::format(
      "{} reads {} after it has given it back: a slot that was given back may be filled anew\n  read at {}\n"
      "  cudaLaunchHostFunc at {}",
      host_function.describe(), allocation ? allocation->describe() : "memory of the host",
      describe_call_site(reinterpret_cast<uintptr_t>(read.return_address)),
      describe_place(host_function.where)));
}

void StreamEngine::note_use_by_host_function(const OperationPointer& host_function,
                                             GlobalAccesses& accesses) {
  const auto note = [&](Ranges& ranges, bool gives_back) {
    if (ranges.is_empty()) return;
    uses_by_host_.push_back({host_function, ranges.merged(), gives_back, last_id_});
    if (uses_by_host_.size() > kMostHostFunctions) uses_by_host_.pop_front();
  };
  note(accesses.given_back, /*gives_back=*/true);
  if (sources_) note(accesses.writes, /*gives_back=*/false);
}

void StreamEngine::note_touches(const OperationPointer& operation) {
  const bool check_order = is_checking();
  for (const Touch& touch : operation->touches) memory.touch(operation, touch, check_order);
}

void StreamEngine::perform(const OperationPointer& operation) {
  GlobalAccesses accesses;
  const bool is_kernel = std::string(operation->kind) == "kernel";
  std::optional<HiddenMemoryIsOpen> open;
  if (!operation->is_host_function) open.emplace();
  // Looking costs time, and with the legacy stream alone everything is in order.
  const bool checks = is_checking();
  const bool watched = watches_host_ && operation->reaches_host;
  accesses.only_writes = !checks && !watched;
  if (is_kernel && (checks || watched || counts_kernel_writes())) accesses_of_running_kernel = &accesses;
  try {
    if (operation->collective) {
      if (!std::exchange(operation->collective->has_run, true)) operation->collective->run();
    } else if (operation->is_host_function) {
      const InsideHostFunction inside(*operation);
      const std::string name = operation->describe(), place = describe_place(operation->where);
      const FaultsAreNamed named(name.c_str(), place.c_str());
      ++host_functions_run_;
      host_functions_that_ran_.push_back(operation);
      if (host_functions_that_ran_.size() > kMostHostFunctions) host_functions_that_ran_.pop_front();
      std::optional<HostAccessesAreNoted> noted;
      if (checks) noted.emplace(accesses);
      operation->run(*operation);
      check_given_back(*operation, accesses);
      note_use_by_host_function(operation, accesses);
    } else if (operation->run) {
      operation->run(*operation);
    }
  } catch (const Failure&) {
    accesses_of_running_kernel = nullptr;
    // The host may yet do, or queue, what the kernel spins on. It can begin anew while it has written
    // nothing.
    operation->put_off =
        nobody_waits_ && is_stuck_ && !accesses.has_atomics && accesses.writes.merged().empty();
    if (operation->put_off) return;
    throw;
  } catch (const std::exception& error) {
    accesses_of_running_kernel = nullptr;
    fail("an exception left " + operation->describe() + ": " + error.what());
  }
  accesses_of_running_kernel = nullptr;
  if (is_kernel && (checks || counts_kernel_writes())) {
    const Counters& did = last_launch();
    add_kernel_writes(memory, *operation, accesses, did.blocks, did.threads);
  }
  note_ran_for_host(operation, accesses);
  if (!checks) {
    operation->never_waited = operation->pdl && !accesses.waited_for_grid_before;
    return;
  }
  const auto add_touches = [&](Ranges& ranges, bool write) {
    for (const Ranges::Range& range : ranges.merged()) {
      const auto* const begin = reinterpret_cast<const std::byte*>(range.begin);
      const AllocationPointer allocation = is_kernel ? nullptr : memory.find(begin);
      // A host function has other memory, too, where there may have been an allocation once.
      if (is_kernel || (allocation && allocation->born < operation->id))
        operation->touches.push_back({begin, range.end - range.begin, write});
    }
  };
  for (AccessesOfPlace& early : accesses.early.all()) {
    const std::vector<Ranges::Range> ranges = early.ranges.merged();
    const auto place = std::make_shared<const AccessesOfPlace>(std::move(early));
    for (const Ranges::Range& range : ranges) {
      operation->touches.push_back(
          {reinterpret_cast<const std::byte*>(range.begin), range.end - range.begin, place->write, place});
    }
  }
  operation->met_others |= accesses.has_atomics;
  operation->never_waited = operation->pdl && !accesses.waited_for_grid_before;
  add_touches(accesses.reads, /*write=*/false);
  check_read_only(*operation, accesses);
  for (AccessesOfPlace& copies : accesses.copied.all()) memory.refuse_pageable(*operation, copies);
  // What a host function writes too early, the copy that reads it says.
  if (is_kernel) add_touches(accesses.writes, /*write=*/true);
}

void StreamEngine::run(const OperationPointer& operation) {
  running_ = operation;
  try {
    const bool is_kernel = std::string(operation->kind) == "kernel";
    if (!is_kernel) note_touches(operation);
    if (!operation->source.empty()) check_source(*operation);
    is_stuck_ = false;
    perform(operation);
    if (operation->put_off && nobody_waits_) {
      running_ = nullptr;
      return;
    }
    if (is_kernel || operation->is_host_function) note_touches(operation);
    if (!is_kernel && (is_checking() || counts_kernel_writes())) add_other_writes(memory, *operation);
  } catch (...) {
    running_ = nullptr;
    nobody_waits_ = false;
    has_failed_ = true;
    throw;
  }
  running_ = nullptr;
  operation->done = true;
  operation->after.clear();
  operation->run = nullptr;
  remember_sources_after(*operation);
  operation->touches.clear();
  pending_.erase(operation->id);
  if (memory.records() > prune_at_) prune();
}

std::set<uint64_t> StreamEngine::needed_by(const OperationPointer& wanted) const {
  std::set<uint64_t> needed;
  std::vector<OperationPointer> open{wanted};
  while (!open.empty()) {
    const OperationPointer operation = std::move(open.back());
    open.pop_back();
    if (operation->done || !needed.insert(operation->id).second) continue;
    open.insert(open.end(), operation->after.begin(), operation->after.end());
    if (!operation->collective) continue;
    const StreamCollective& collective = *operation->collective;
    for (unsigned rank = 0; rank < collective.ranks; ++rank) {
      if (!collective.called[rank]) {
        fail(fmt::format("the host waits for {} of {} ranks, but rank {} has not called it",
                         operation->describe(), collective.ranks, rank));
      }
      if (OperationPointer member = collective.members[rank].lock()) open.push_back(std::move(member));
    }
  }
  return needed;
}

/// Of those that can run next: where landing is late the one that was enqueued last, so that what is not in
/// order comes in the wrong order.
void StreamEngine::run_all_of(const std::set<uint64_t>& ids) {
  std::map<uint64_t, size_t> unmet;
  std::map<uint64_t, std::vector<uint64_t>> successors;
  std::set<uint64_t> ready;
  for (uint64_t id : ids) {
    size_t count = 0;
    for (const OperationPointer& before : pending_.at(id)->after) {
      if (before->done) continue;
      successors[before->id].push_back(id);
      ++count;
    }
    unmet[id] = count;
    if (!count) ready.insert(id);
  }
  const bool latest_first = options().schedule.landing == Landing::late;
  const auto take_next = [&]() -> OperationPointer {
    const auto can_begin = [&](uint64_t id) { return can_run(*pending_.at(id)); };
    const auto last = std::find_if(ready.rbegin(), ready.rend(), can_begin);
    if (last == ready.rend()) return nullptr;
    const uint64_t id = latest_first ? *last : *std::find_if(ready.begin(), ready.end(), can_begin);
    ready.erase(id);
    return pending_.at(id);
  };
  for (size_t left = ids.size(); left; --left) {
    const OperationPointer next = take_next();
    if (!next) {
      fail(pending_.at(*ready.begin())->describe() +
           " never begins: operations that begin together wait for each other; " + describe_queues());
    }
    run(next);
    for (uint64_t id : successors[next->id]) {
      if (!--unmet[id]) ready.insert(id);
    }
  }
}

void StreamEngine::run_until_done(const OperationPointer& operation) {
  if (!operation->done) run_all_of(needed_by(operation));
}

void StreamEngine::run_one_of_those_needed_by(const OperationPointer& operation) {
  for (uint64_t id : needed_by(operation)) {
    const OperationPointer next = pending_.at(id);
    if (!can_run(*next)) continue;
    run(next);
    return;
  }
}

void StreamEngine::run_everything() {
  while (!pending_.empty()) run_until_done(pending_.rbegin()->second);
}

OperationPointer StreamEngine::first_host_function() const {
  for (const auto& [id, operation] : pending_) {
    if (operation->is_host_function) return operation;
  }
  return nullptr;
}

/// Any that comes after no other may be the next one: the schedule chooses.
OperationPointer StreamEngine::choose_host_function() {
  std::vector<OperationPointer> next;
  for (const auto& one : pending_) {
    const OperationPointer& operation = one.second;
    if (!operation->is_host_function) continue;
    const auto is_first = [&](const OperationPointer& before) { return !before->is_before(*operation); };
    if (std::all_of(next.begin(), next.end(), is_first)) next.push_back(operation);
  }
  if (next.empty()) return nullptr;
  switch (options().schedule.landing) {
    case Landing::eager:
      return next.front();
    case Landing::late:
      return next.back();
    default:
      return next[random_.below(next.size())];
  }
}

void StreamEngine::run_next_host_function(const std::string& signal) {
  if (const OperationPointer next = choose_host_function()) {
    run_until_done(next);
    return;
  }
  fail("the host waits for " + signal + "; no queued host function will change it; " + describe_queues());
}

/// Called on any of the OS threads that run the kernel. The thread that has launched it holds the lock, and
/// waits for them.
bool StreamEngine::run_beside_kernel() {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  for (const auto& [id, operation] : pending_) {
    if (operation == running_ || operation->is_kernel() || operation->collective || !can_run(*operation))
      continue;
    const OperationPointer kernel = running_, beside = operation;
    const bool nobody_waits = std::exchange(nobody_waits_, false);
    run(beside);
    running_ = kernel;
    kernel->met_others = true;
    nobody_waits_ = nobody_waits;
    return true;
  }
  is_stuck_ = true;
  return false;
}

void StreamEngine::abandon() {
  const HiddenMemoryIsOpen open;
  for (auto& [id, operation] : pending_) {
    operation->done = true;
    operation->after.clear();
    operation->engine = Engine::none;
    operation->us = 0;
    operation->is_on_timeline = false;
    if (operation->gives_back && operation->run) operation->run(*operation);
    operation->run = nullptr;
  }
  pending_.clear();
  host_memory_in_use_.clear();
  sources_ = 0;
  for (unsigned lane = 0; lane < ticks_.size(); ++lane) host_.raise(lane, ticks_[lane]);
  memory.forget_history();
  advance_time();
}

// --- what the host knows ----------------------------------------------------------------------------------

void StreamEngine::host_learns(const OrderClock& clock, const std::vector<std::shared_ptr<TimePoint>>& ends) {
  host_.join(clock);
  host_after_.insert(host_after_.end(), ends.begin(), ends.end());
  advance_time();
  std::erase_if(host_after_, [&](const std::shared_ptr<TimePoint>& point) {
    if (point->is_known) host_us_ = std::max(host_us_, point->us);
    return point->is_known;
  });
}

void StreamEngine::wait_on_host(const OperationPointer& operation) {
  run_until_done(operation);
  host_learns(operation->clock, {operation->end});
}

void StreamEngine::wait_on_host_for_device(int number) {
  Device& waited_for = devices_[number];
  std::vector<OperationPointer> last = std::exchange(waited_for.last_of_destroyed, {});
  if (waited_for.legacy.last) last.push_back(waited_for.legacy.last);
  for (const auto& [thread, stream] : waited_for.per_thread) {
    if (stream.last) last.push_back(stream.last);
  }
  for (const CUstream_st* stream : streams_) {
    if (stream->device == number && stream->last) last.push_back(stream->last);
  }
  std::sort(last.begin(), last.end(),
            [](const OperationPointer& one, const OperationPointer& other) { return one->id < other->id; });
  for (const OperationPointer& operation : last) wait_on_host(operation);
}

/// Of the notes on memory only those matter that something queued, or something to come, may be out of order
/// with.
void StreamEngine::prune() {
  OrderClock common = host_;
  for (const auto& [id, operation] : pending_) common.meet(operation->clock);
  memory.prune(common, oldest_pending());
  prune_at_ = std::max<size_t>(256, 2 * memory.records());
}

}  // namespace cpu_device
