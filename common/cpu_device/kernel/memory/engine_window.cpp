/// @file
/// Shared memory as numbers: the window of the cluster, and the loads and stores that inline PTX makes.
#include <cstring>
#include <string>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/memory/engine_remote.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {
namespace {

constexpr unsigned kRankShift = 24;  ///< above the bits of an offset
constexpr uint32_t kOffsetMask = (1u << kRankShift) - 1;
constexpr uint32_t kNotShared = 1u << 31;

std::string why_not_in_window(Thread& thread, uint64_t address) {
  SharedMemory& shared = thread.block->shared;
  const auto begin = reinterpret_cast<uintptr_t>(shared.generic());
  if (address > UINT32_MAX && shared.contains(reinterpret_cast<const void*>(address)))
    return " is a generic pointer, where an address in shared memory is needed: __cvta_generic_to_shared "
           "makes "
           "one of it";
  if (static_cast<uint32_t>(address - begin) < shared.bytes())
    return " is the lower half of a generic pointer to shared memory: __cvta_generic_to_shared makes an "
           "address "
           "of a pointer";
  if (address >> 31 == 1) return " comes of a pointer that is not to shared memory";
  const auto end = kSharedWindowBase + static_cast<uint64_t>(shared.bytes());
  if (address >= end && address < kOffsetMask)
    return print(
        " lies %llu bytes behind the end of the block's %zu bytes of shared memory: is an index too "
        "large?",
        static_cast<unsigned long long>(address - end), shared.bytes());
  return print(" is in no block's shared memory; this block's begins at 0x%x and has %zu bytes",
               kSharedWindowBase, shared.bytes());
}

}  // namespace

uint32_t to_shared_window(const void* pointer) {
  constexpr ptrdiff_t kNear = ptrdiff_t{1} << 20;
  const auto low = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
  if (!current_thread) return low | kNotShared;
  for (const auto& block : current_thread->cluster.blocks()) {
    if (!block->shared.contains(pointer)) continue;
    const uint32_t address =
        kSharedWindowBase +
        static_cast<uint32_t>(static_cast<const std::byte*>(pointer) - block->shared.generic());
    if (block.get() == current_thread->block) return address;
    return address | (block->ids.rank_in_cluster + 1) << kRankShift;
  }
  SharedMemory& own = current_thread->block->shared;
  const ptrdiff_t distance = static_cast<const std::byte*>(pointer) - own.generic();
  const bool is_near = own.bytes() && distance > -kNear && distance < kNear;
  return is_near ? kSharedWindowBase + static_cast<uint32_t>(distance) : low | kNotShared;
}

void* from_shared_window(uint64_t address) {
  if (!current_thread || address > UINT32_MAX) return nullptr;
  const auto rank = static_cast<size_t>(address >> kRankShift);
  auto& blocks = current_thread->cluster.blocks();
  if (rank > blocks.size()) return nullptr;
  SharedMemory& shared = rank ? blocks[rank - 1]->shared : current_thread->block->shared;
  const auto offset = static_cast<uint32_t>(address & kOffsetMask) - kSharedWindowBase;
  return offset <= shared.bytes() ? shared.generic() + offset : nullptr;
}

SharedPlace find_in_shared_window(uint64_t address, size_t bytes, bool of_cluster, const char* what,
                                  Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  SharedPlace place;
  place.pointer = static_cast<std::byte*>(from_shared_window(address));
  Block* block = thread.block;
  if (const auto rank = static_cast<unsigned>(address >> kRankShift); place.pointer && rank)
    block = cluster.blocks()[rank - 1].get();
  if (!place.pointer || place.pointer == block->shared.generic() + block->shared.bytes()) {
    cluster.fail(thread,
                 print("%s: 0x%llx", what, static_cast<unsigned long long>(address)) +
                     why_not_in_window(thread, address),
                 where);
  }
  const auto offset = static_cast<size_t>(place.pointer - block->shared.generic());
  if (offset + bytes > block->shared.bytes()) {
    cluster.fail(thread,
                 print("%s: %zu bytes at 0x%llx reach over the end of the block's %zu bytes of shared memory",
                       what, bytes, static_cast<unsigned long long>(address), block->shared.bytes()),
                 where);
  }
  place.rank = block->ids.rank_in_cluster;
  place.is_own = block == thread.block;
  place.own = thread.block->shared.generic() + offset;
  if (!place.is_own && !of_cluster) {
    cluster.fail(
        thread,
        print("%s: 0x%llx lies in the shared memory of block %u of the cluster; the instruction takes "
              "addresses of the own block (shared::cta)",
              what, static_cast<unsigned long long>(address), place.rank),
        where);
  }
  return place;
}

size_t shared_memory_bytes() { return current_thread ? current_thread->block->shared.bytes() : 0; }

bool is_local(const void* address) {
  if (!current_thread) return true;
  const ObservedThread& thread = current_thread->observed;
  return address >= thread.stack_begin && address < thread.stack_end;
}

void note_access(const void* address, size_t bytes, bool write, const char* what, Location where,
                 bool is_atomic) {
  Observers& watch = observers();
  if (!watch.running || is_local(address)) return;
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  const Unobserved unobserved;
  const auto* const at = static_cast<const std::byte*>(address);
  for (unsigned block = 0; block < watch.shared.size(); ++block) {
    const SharedWindow& window = watch.shared[block];
    if (at < window.begin || at >= window.begin + window.bytes) continue;
    const auto offset = static_cast<size_t>(at - window.begin);
    const bool is_own = block == thread.observed.block;
    if (watch.layout && !watch.layout->covers(offset, bytes)) {
      cluster.fail(thread, std::string(what) + ": " + watch.layout->describe_overrun(offset, bytes), where);
    }
    if (!is_own) find_block(thread, block, what, where);  // which names one that has left
    if (watch.counter) {
      watch.counter->lane_access(thread.observed.warp, thread.lane, what, Space::shared, offset,
                                 static_cast<uint32_t>(bytes), write);
      if (!is_own) watch.counter->lane_access_of_other_block(static_cast<uint32_t>(bytes));
    }
    if (VirtualClock* clock = watch.clock) {
      const auto amount = static_cast<double>(bytes);
      if (is_own) {
        write ? clock->store_shared(thread.number, amount) : clock->load_shared(thread.number, amount);
      } else {
        write ? void(clock->send_to_block(thread.number, amount))
              : clock->load_from_block(thread.number, amount);
      }
    }
    if (RaceChecker* races = watch.races; races && !is_atomic) {
      races->access(thread.number, block, offset, bytes, write, what, cluster.site(where));
      cluster.leave_if_failed();
    }
    return;
  }
  if (watch.guard) {
    if (const ForbiddenZone* zone = watch.guard->forbids(address, bytes)) {
      cluster.fail(thread,
                   print("%s: its %s of %zu bytes ", what, write ? "store" : "load", bytes) +
                       zone->describe(address, bytes),
                   where);
    }
  }
  if (GlobalAccesses* global = watch.global) {
    (write ? global->writes : global->reads).add(address, bytes);
    if (thread.block->is_early) global->early.add(address, bytes, write, where);
  }
  if (watch.counter) {
    watch.counter->lane_access(thread.observed.warp, thread.lane, what, Space::global,
                               reinterpret_cast<uintptr_t>(address), static_cast<uint32_t>(bytes), write);
  }
  if (VirtualClock* clock = watch.clock) {
    const auto amount = static_cast<double>(bytes);
    write ? clock->store_global(thread.number, amount) : clock->load_global(thread.number, amount);
  }
  check_copy_in_grid(thread, address, bytes, write, where);
  cluster.leave_if_failed();
}

}  // namespace cpu_device
