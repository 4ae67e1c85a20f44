/// @file
/// What the host's own code reads and writes while work that uses the same memory may be under way: managed
/// and mapped memory of kernels, and both ends of copies from and to pinned memory. Of a program of lessons
/// it looks at the targets of downloads alone that are slots of a ring, and the source of a copy is compared
/// with what it was (pinned_copies.cpp). The memory of the device alone is hidden from the host
/// (observe/hidden_memory.hpp).
///
/// The hooks of instrumented code tell of accesses, also of memcpy and its like; what other library functions
/// of the host touch is not seen.
#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

constexpr size_t kMostDownloads = 64;  ///< into slots of rings, before those are forgotten that have ended

/// All memory in use that the host may reach lies between these, and how often that has grown. Known without
/// the lock, which a host that spins on a flag would hardly ever leave to others.
std::atomic<const std::byte*> lowest = nullptr, highest = nullptr;
std::atomic<uint64_t> grown = 0;

/// Has this thread just looked at the same flag, and nothing been added since?
bool is_same_flag(const std::byte* address) {
  thread_local const std::byte* last = nullptr;
  thread_local uint64_t seen = 0;
  if (last == address && seen == grown) return true;
  last = address;
  seen = grown;
  return false;
}

}  // namespace

void StreamEngine::watch_host_accesses() { watches_host_ = true; }

void StreamEngine::note_use_of_host_memory(const OperationPointer& operation, const std::byte* begin,
                                           const std::byte* end, bool write) {
  const AllocationPointer allocation = memory.find(begin);
  if (!allocation || allocation->kind == MemoryKind::device) return;
  host_memory_in_use_.push_back({begin, end, write, operation});
  const std::byte* const allocation_end = allocation->begin + allocation->bytes;
  lowest = lowest.load() ? std::min<const std::byte*>(lowest, allocation->begin) : allocation->begin;
  highest = std::max(highest.load(), allocation_end);
  ++grown;
  host_access_observer = [](const void* address, size_t bytes, bool writes, bool is_strong,
                            const void* return_address) {
    streams().check_host_access(static_cast<const std::byte*>(address), bytes, writes, is_strong,
                                return_address);
  };
}

void StreamEngine::note_download_to_slot(const OperationPointer& operation) {
  if (!operation->spoils_target) return;
  for (const Touch& touch : operation->touches) {
    const AllocationPointer allocation = touch.write ? memory.find(touch.begin) : nullptr;
    if (!allocation || !allocation->slot) continue;
    if (host_memory_in_use_.size() >= kMostDownloads)
      std::erase_if(host_memory_in_use_,
                    [&](const Allocation::Record& use) { return host_knows(*use.operation); });
    note_use_of_host_memory(operation, touch.begin, touch.begin + touch.bytes, /*write=*/true);
  }
}

void StreamEngine::note_queued_for_host(const OperationPointer& operation) {
  if (!watches_host_) {
    note_download_to_slot(operation);
    return;
  }
  if (operation->watches_source || operation->spoils_target)
    for (const Touch& touch : operation->touches)
      note_use_of_host_memory(operation, touch.begin, touch.begin + touch.bytes, touch.write);
  if (!operation->is_kernel() || !operation->reaches_host) return;
  // What it touches is known when it has run.
  for (const void* pointer : operation->pointers)
    note_use_of_host_memory(operation, static_cast<const std::byte*>(pointer), nullptr, false);
}

void StreamEngine::note_ran_for_host(const OperationPointer& operation, GlobalAccesses& accesses) {
  if (operation->is_host_function) told_host_.join(operation->clock);
  if (!watches_host_) return;
  if (!operation->is_kernel() || !operation->reaches_host) return;
  // Where it is no more noted, it and the host look at each other.
  const size_t noted = std::erase_if(
      host_memory_in_use_, [&](const Allocation::Record& use) { return use.operation == operation; });
  for (Ranges* const ranges : {&accesses.reads, &accesses.writes})
    for (const Ranges::Range& range : noted ? ranges->merged() : std::vector<Ranges::Range>{})
      note_use_of_host_memory(operation, reinterpret_cast<const std::byte*>(range.begin),
                              reinterpret_cast<const std::byte*>(range.end), ranges == &accesses.writes);
}

void StreamEngine::check_host_access(const std::byte* address, size_t bytes, bool write, bool is_strong,
                                     const void* return_address) {
  if (address < lowest || address >= highest || (is_strong && is_same_flag(address))) return;
  std::unique_lock<std::recursive_mutex> lock(mutex, std::defer_lock);
  if (watches_host_) {
    lock.lock();
  } else if (std::uncaught_exceptions() > 0 || !lock.try_lock()) {
    return;  // a host function may wait for the thread that asks
  }
  if (running_ || running_host_function()) return;
  const AllocationPointer allocation = memory.find(address);
  if (!allocation || allocation->kind == MemoryKind::device) return;
  // A function of its own that ran in a stream may have told the host.
  const auto is_known = [&](const Allocation::Record& use) {
    return host_knows(*use.operation) ||
           told_host_[use.operation->lane] >= use.operation->clock[use.operation->lane];
  };
  const auto forget_known = [&] { std::erase_if(host_memory_in_use_, is_known); };
  forget_known();
  if (is_strong) {
    std::erase_if(host_memory_in_use_,
                  [&](const Allocation::Record& use) { return allocation->contains(use.begin); });
  } else {
    try {
      run_kernels_for_host();
    } catch (const std::exception& error) {
      end_program(error.what());
    }
  }
  for (const Allocation::Record& use : host_memory_in_use_) {
    if (!use.end || !(write || use.write) || use.end <= address || use.begin >= address + bytes) continue;
    const Operation& user = *use.operation;
    end_program(fmt::format(
        "the host {} {}, from byte {} on, which {} {}, and has not waited for that: {} must come "
        "first; schedule {}\n  {} at {}{}",
        spoils_what_it_gives_back ? "gives back"
        : write                   ? "writes"
                                  : "reads",
        allocation->describe(), address - allocation->begin, user.describe(), use.write ? "writes" : "reads",
        user.on_legacy_stream
            ? "a cudaDeviceSynchronize"
            : "a cudaStreamSynchronize, or a cudaEventSynchronize of an event recorded behind it,",
        options().schedule.explained_for_streams(),
        spoils_what_it_gives_back ? "given back"
        : write                   ? "written"
                                  : "read",
        describe_call_site(reinterpret_cast<uintptr_t>(return_address)), user.describe_places()));
  }
  if (host_memory_in_use_.empty()) host_access_observer = nullptr;
}

/// Those of which it is not known yet what they touch.
void StreamEngine::run_kernels_for_host() {
  for (;;) {
    const auto next = std::find_if(host_memory_in_use_.begin(), host_memory_in_use_.end(),
                                   [](const Allocation::Record& use) { return !use.end; });
    if (next == host_memory_in_use_.end()) return;
    const OperationPointer kernel = next->operation;
    nobody_waits_ = true;
    for (const uint64_t id : needed_by(kernel)) {
      const auto found = pending_.find(id);
      if (found != pending_.end() && can_run(*found->second)) run(OperationPointer(found->second));
    }
    nobody_waits_ = false;
    // It waits for what the host has yet to do.
    if (!kernel->done)
      std::erase_if(host_memory_in_use_,
                    [&](const Allocation::Record& use) { return use.operation == kernel; });
  }
}

}  // namespace cpu_device
