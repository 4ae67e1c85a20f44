/// @file
/// Looks up memory, and compares what operations do to it.
#include "common/cpu_device/streams/memory_table.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <algorithm>

#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

/// Freed memory that is remembered, so that its use can be named.
constexpr size_t kMaxFreed = 4096;

std::string what_it_does(bool write) { return write ? "writes" : "reads"; }
std::string what_it_does(const Allocation::Record& record) {
  return record.write && record.operation->frees() ? "frees" : what_it_does(record.write);
}

/// Whether a race of `operation` with `one` says more than one with `other`: the last call before it does, or
/// else the first one after it.
bool is_nearer(const Operation& operation, const Operation& one, const Operation& other) {
  const bool one_before = one.id < operation.id, other_before = other.id < operation.id;
  if (one_before != other_before) return one_before;
  return one_before ? one.id > other.id : one.id < other.id;
}

/// Host functions hand over to each other and to kernels by locks and flags, which nobody sees.
bool may_hand_over(const Operation& one, const Operation& other) {
  return (one.is_host_function && (other.is_host_function || other.is_kernel())) ||
         (other.is_host_function && one.is_kernel());
}

/// Named in the order of the calls, so that the words do not depend on who ran first.
[[noreturn]] void report_race(const Allocation& allocation, const Allocation::Record& one,
                              const Allocation::Record& other, const std::byte* place) {
  const Allocation::Record& first = one.operation->id < other.operation->id ? one : other;
  const Allocation::Record& second = &first == &one ? other : one;
  const auto offset = static_cast<size_t>(place - allocation.begin);
  std::string missing = streams().explain_early_record(*first.operation, *second.operation);
  const bool is_too_early = !missing.empty();
  if (!is_too_early) missing = streams().explain_wait_without_order(*first.operation, *second.operation);
  const bool has_wait = !missing.empty();
  if (!has_wait) {
    const char* const early = first.operation->returns_early;
    missing = streams().explain_legacy_kernel(*first.operation, *second.operation);
    const bool are_two_streams = first.operation->stream != second.operation->stream;
    if (missing.empty() && are_two_streams)
      missing = early ? "a cudaStreamWaitEvent is missing"
                      : streams().explain_missing_wait(*first.operation, *second.operation);
    else if (missing.empty())
      missing = "they are in branches of a graph that do not meet";
    if (early) missing += fmt::format(", or a wait of the host for {}: {}", first.operation->stream, early);
  }
  missing += streams().explain_missing_order(*first.operation, *second.operation, allocation.begin,
                                             allocation.begin + allocation.bytes);
  const std::string before =
      first.operation->allocates()
          ? fmt::format("which exists on {} from its allocation on, and nothing orders {} behind that",
                        first.operation->stream, second.operation->stream)
          : fmt::format("which {} {}, and nothing orders them", first.operation->describe(),
                        what_it_does(first));
  fail(fmt::format("{} {} {}, from byte {} on, {}: {}", second.operation->describe(), what_it_does(second),
                   allocation.describe(), offset, before, missing),
       first.operation->describe_places() + second.operation->describe_places());
}

/// Whether it lies where a parameter of the kernel points to, or a little further on. What else a kernel is
/// seen to load and store may be the emulator's own: the linker may have chosen an instrumented copy of a
/// function that it uses.
bool was_given_to(const Operation& kernel, const std::byte* begin, const std::byte* end) {
  constexpr std::ptrdiff_t kFurtherOn = 64 << 20;
  return std::any_of(kernel.pointers.begin(), kernel.pointers.end(), [&](const void* pointer) {
    const auto* place = static_cast<const std::byte*>(pointer);
    return place && place < end && begin - place < kFurtherOn && !streams().memory.find(place);
  });
}

[[noreturn]] void report_pageable(const Operation& kernel, std::ptrdiff_t bytes, bool write,
                                  const std::string& where = "") {
  fail(fmt::format(
      "{} {} {} bytes of the host's pageable memory, which the device cannot reach: give it device "
      "memory, or pinned memory (cudaMallocHost, cudaHostRegister){}",
      kernel.describe(), what_it_does(write), bytes, where.empty() ? "" : "\n  at " + where));
}

[[noreturn]] void report_early_access(const Allocation& allocation, const Allocation::Record& early,
                                      const Allocation::Record& before, const std::byte* place,
                                      const std::string& where) {
  fail(fmt::format(
      "{}, a programmatic dependent launch, {} {}, from byte {} on, {}, while {} before it may still {} "
      "that: "
      "griddepcontrol_wait must come first\n  at {}",
      early.operation->describe(), what_it_does(early.write), allocation.describe(), place - allocation.begin,
      early.operation->never_waited ? "and never waits for the kernel before it"
                                    : "before it has waited for the kernel before it",
      before.operation->describe(), before.write ? "write" : "read", where));
}

}  // namespace

bool is_on_own_stack(const std::byte* place) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes)) return false;
  void* stack = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &stack, &bytes);
  pthread_attr_destroy(&attributes);
  return place >= stack && place < static_cast<std::byte*>(stack) + bytes;
}

std::string describe_memory(MemoryKind kind, size_t bytes, const std::string& origin) {
  const char* const what = kind == MemoryKind::device    ? "the buffer of "
                           : kind == MemoryKind::managed ? "the managed memory of "
                                                         : "the pinned memory of ";
  return fmt::format("{}{} bytes {}", what, bytes, origin);
}

std::string Allocation::describe() const {
  if (slot) return fmt::format("{} (pinned memory of {} bytes)", slot->name, bytes);
  return describe_memory(kind, bytes, origin);
}

AllocationPointer MemoryTable::add(MemoryKind kind, void* begin, size_t bytes, int device,
                                   const std::string& origin, uint64_t born) {
  auto allocation = std::make_shared<Allocation>();
  allocation->kind = kind;
  allocation->begin = static_cast<std::byte*>(begin);
  allocation->bytes = bytes;
  allocation->device = device;
  allocation->origin = origin;
  allocation->born = born;
  live_[allocation->begin] = allocation;
  return allocation;
}

void MemoryTable::free(const AllocationPointer& allocation, uint64_t freed, bool is_over) {
  live_.erase(allocation->begin);
  allocation->freed = freed;
  if (is_over) {
    records_ -= allocation->history.size();
    return;
  }
  freed_.push_back(allocation);
}

void MemoryTable::forget_freed(const std::byte* begin, const std::byte* end) {
  std::erase_if(freed_, [&](const AllocationPointer& allocation) {
    if (allocation->begin < begin || allocation->begin >= end) return false;
    records_ -= allocation->history.size();
    return true;
  });
}

AllocationPointer MemoryTable::find(const void* pointer) const {
  auto next = live_.upper_bound(static_cast<const std::byte*>(pointer));
  if (next == live_.begin()) return nullptr;
  const AllocationPointer& allocation = std::prev(next)->second;
  return allocation->contains(pointer) ? allocation : nullptr;
}

AllocationPointer MemoryTable::find_begin(const void* pointer) const {
  const auto found = live_.find(static_cast<const std::byte*>(pointer));
  return found == live_.end() ? nullptr : found->second;
}

AllocationPointer MemoryTable::find_freed(const void* pointer) const {
  if (find(pointer)) return nullptr;
  const auto found = std::find_if(freed_.rbegin(), freed_.rend(), [&](const AllocationPointer& allocation) {
    return allocation->contains(pointer);
  });
  return found == freed_.rend() ? nullptr : *found;
}

bool MemoryTable::is_freed(const void* pointer) const { return find_freed(pointer) != nullptr; }

size_t MemoryTable::bytes(MemoryKind kind) const {
  size_t sum = 0;
  for (const auto& [begin, allocation] : live_) {
    if (allocation->kind == kind) sum += allocation->bytes;
  }
  return sum;
}

AllocationPointer MemoryTable::find_at(uint64_t id, const void* pointer) const {
  const AllocationPointer now = find(pointer);
  if (now && now->born < id) return now;
  const auto is_meant = [&](const AllocationPointer& freed) {
    return freed->contains(pointer) && freed->born < id && id <= freed->freed;
  };
  const auto found = std::find_if(freed_.rbegin(), freed_.rend(), is_meant);
  return found == freed_.rend() ? nullptr : *found;
}

/// The allocation that this operation means: addresses are given out again.
AllocationPointer MemoryTable::find_for(const Operation& operation, const std::byte* begin) const {
  const AllocationPointer now = find(begin);
  if (now && now->born < operation.id) return now;
  AllocationPointer freed_before;
  for (auto it = freed_.rbegin(); it != freed_.rend(); ++it) {
    const AllocationPointer& allocation = *it;
    if (!allocation->contains(begin) || allocation->born >= operation.id) continue;
    if (operation.id <= allocation->freed) return allocation;
    if (!freed_before) freed_before = allocation;
  }
  if (freed_before) {
    fail(operation.describe() + " uses " + freed_before->describe() +
             " after it was freed: the call comes after its cudaFreeAsync",
         operation.describe_places() + freed_before->describe_free());
  }
  return nullptr;
}

void MemoryTable::refuse_pageable(const Operation& kernel, AccessesOfPlace& copies) const {
  for (const Ranges::Range& range : copies.ranges.merged()) {
    const auto *begin = reinterpret_cast<const std::byte*>(range.begin),
               *end = reinterpret_cast<const std::byte*>(range.end);
    const auto next = live_.upper_bound(begin);
    const bool touches_known = find(begin) || (next != live_.end() && next->first < end);
    if (!touches_known && !is_freed(begin))
      report_pageable(kernel, end - begin, copies.write, copies.describe());
  }
}

void MemoryTable::touch(const OperationPointer& operation, const Touch& touch_, bool check_order) {
  const std::byte* begin = touch_.begin;
  const std::byte* const end = begin + touch_.bytes;
  while (begin < end) {
    const AllocationPointer allocation = find_for(*operation, begin);
    if (!allocation) {
      // Not memory of the device or pinned; perhaps that begins further on.
      const auto next = live_.upper_bound(begin);
      const bool is_all = next == live_.end() || next->first >= end;
      const std::byte* const unknown_end = is_all ? end : next->first;
      if (operation->is_kernel() && was_given_to(*operation, begin, unknown_end) && !is_on_own_stack(begin))
        report_pageable(*operation, unknown_end - begin, touch_.write);
      if (is_all) return;
      begin = next->first;
      continue;
    }
    const std::byte* const last = std::min<const std::byte*>(end, allocation->begin + allocation->bytes);
    touch(operation, *allocation, begin, last, touch_, check_order);
    begin = last;
  }
}

void MemoryTable::touch(const OperationPointer& operation, Allocation& allocation, const std::byte* begin,
                        const std::byte* end, const Touch& touch_, bool check_order) {
  const bool write = touch_.write, early = touch_.early_at != nullptr;
  if (allocation.kind == MemoryKind::device && std::string(operation->kind) == "kernel" &&
      !may_access(operation->device, allocation)) {
    fail(
        fmt::format("{}, which runs on device {}, touches {} of device {} without peer access: a "
                    "cudaDeviceEnablePeerAccess (of a pool, a cudaMemPoolSetAccess) is missing",
                    operation->describe(), operation->device, allocation.describe(), allocation.device));
  }
  if (!check_order) return;
  const Allocation::Record record{begin, end, write, operation};
  // Of those that are in no order the latest before this call: whoever waits for that one waits for the
  // others of its stream too.
  const Allocation::Record* unordered = nullptr;
  for (const Allocation::Record& other : allocation.history) {
    if (other.operation == operation || !(write || other.write)) continue;
    if (other.end <= begin || other.begin >= end) continue;
    if (operation->is_before(*other.operation) || may_hand_over(*operation, *other.operation)) continue;
    if (early && other.operation->is_before(*operation)) {
      const Operation& before = *other.operation;
      if (operation->early_clock[before.lane] < before.clock[before.lane])
        report_early_access(allocation, record, other, std::max(begin, other.begin),
                            touch_.early_at->describe());
      continue;
    }
    if (other.operation->is_before(*operation)) continue;
    if (!unordered || is_nearer(*operation, *other.operation, *unordered->operation)) unordered = &other;
  }
  if (unordered) report_race(allocation, record, *unordered, std::max(begin, unordered->begin));
  if (early) return;  // noted again among all that it touches
  allocation.history.push_back(record);
  ++records_;
}

OperationPointer MemoryTable::user_unknown_to(const OrderClock& host, const Allocation& allocation) const {
  for (const Allocation::Record& record : allocation.history) {
    const Operation& operation = *record.operation;
    if (!operation.on_legacy_stream && host[operation.lane] < operation.clock[operation.lane])
      return record.operation;
  }
  return nullptr;
}

void MemoryTable::prune(const OrderClock& common, uint64_t oldest_pending) {
  const auto prune_one = [&](Allocation& allocation) {
    records_ -= std::erase_if(allocation.history, [&](const Allocation::Record& record) {
      return common[record.operation->lane] >= record.operation->clock[record.operation->lane];
    });
  };
  for (const auto& [begin, allocation] : live_) prune_one(*allocation);
  for (const AllocationPointer& allocation : freed_) prune_one(*allocation);
  // Where memory has been given out again, only operations enqueued before can still mean what it was.
  size_t surplus = freed_.size() > kMaxFreed ? freed_.size() - kMaxFreed : 0;
  std::erase_if(freed_, [&](const AllocationPointer& allocation) {
    if (!allocation->history.empty() || oldest_pending <= allocation->freed) return false;
    if (surplus) return --surplus, true;
    return find(allocation->begin) != nullptr;
  });
}

void MemoryTable::forget_history() {
  for (const auto& [begin, allocation] : live_) allocation->history.clear();
  freed_.clear();
  records_ = 0;
}

}  // namespace cpu_device
