/// @file
/// Happens-before between clusters of one launch.
#include "common/cpu_device/kernel/grid_order.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

template <class Knowledge>
void append(Knowledge& to, const Knowledge& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

GridOrder::Knowledge GridOrder::known_to(RaceChecker& races, unsigned thread) {
  Knowledge known{{cluster_, races.release_epochs(thread)}};
  for (const Acquired& acquired : acquired_)
    if (races.knows(thread, acquired.thread, acquired.epoch)) append(known, acquired.what);
  return known;
}

void GridOrder::fence(RaceChecker& races, unsigned thread) {
  fenced_[thread] = known_to(races, thread);
  if (const auto seen = pending_.find(thread); seen != pending_.end()) {
    acquired_.push_back({thread, races.epoch(thread), seen->second});
    pending_.erase(seen);
  }
}

void GridOrder::before_atomic(RaceChecker& races, unsigned thread, const void* object, bool releases) {
  if (releases)
    append(released_[object], known_to(races, thread));
  else if (const auto fenced = fenced_.find(thread); fenced != fenced_.end())
    append(released_[object], fenced->second);
}

void GridOrder::after_atomic(RaceChecker& races, unsigned thread, const void* object, bool acquires) {
  const auto released = released_.find(object);
  if (released == released_.end()) return;
  if (acquires)
    acquired_.push_back({thread, races.epoch(thread), released->second});
  else
    append(pending_[thread], released->second);
}

bool GridOrder::is_ordered(const RaceChecker& races, unsigned thread, const Write& write) const {
  return std::any_of(acquired_.begin(), acquired_.end(), [&](const Acquired& acquired) {
    if (!races.knows(thread, acquired.thread, acquired.epoch)) return false;
    return std::any_of(acquired.what.begin(), acquired.what.end(), [&](const Released& released) {
      return released.cluster == write.cluster && released.epochs[write.thread] >= write.epoch;
    });
  });
}

std::string GridOrder::access(const RaceChecker& races, unsigned thread, const ThreadIds& ids,
                              const std::byte* address, size_t bytes, bool write, const Place& place) {
  if (!write && (address + bytes <= first_written_ || address >= written_end_)) return "";
  const Write now{cluster_, thread, races.epoch(thread), place, ids.block->index, ids.rank};
  for (const std::byte* byte = address; byte < address + bytes; ++byte) {
    const auto last = writes_.find(byte);
    if (last != writes_.end() && last->second.cluster != cluster_ && !is_ordered(races, thread, last->second))
      return "race in global memory: blocks hand over, and what one has stored was not released before an "
             "atomic operation, or not acquired after it\n  first store by " +
             describe(last->second) + "\n  then  " + (write ? "store by " : "load by ") + describe(now);
    if (write) writes_[byte] = now;
  }
  if (write) {
    first_written_ = first_written_ ? std::min(first_written_, address) : address;
    written_end_ = std::max(written_end_, address + bytes);
  }
  return "";
}

std::string GridOrder::describe(const Write& access) {
  const Uint3& block = access.block;
  const auto& [return_address, call] = access.place;
  return fmt::format("block ({},{},{}) warp {} lane {} at {}", block.x, block.y, block.z,
                     access.rank / kWarpLanes, access.rank % kWarpLanes,
                     return_address ? describe_call_site(reinterpret_cast<uintptr_t>(return_address))
                                    : fmt::format("{}:{}", short_path(call.file), call.line));
}

}  // namespace cpu_device
