/// @file
/// Which bytes of each allocation kernels have written.
#include "common/cpu_device/streams/kernel_writes.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

constexpr size_t kMostAllocations = 4;

struct Written {
  std::weak_ptr<Allocation> is_of;
  AllocationPointer allocation;  ///< where writes are counted, also of one that was freed; else null
  Ranges ranges;                 ///< by kernels
  Ranges known;                  ///< by anybody
  std::string last_launch;       ///< of a kernel that wrote there
  std::string last_copy;         ///< or memset
  bool is_downloaded = false;    ///< bytes that nobody had written were copied to the host
};
std::map<const Allocation*, Written>& written() {
  static auto& all = *new std::map<const Allocation*, Written>;
  return all;
}
std::atomic<bool> counts = false;
bool has_atomics = false;

/// The first one since somebody asked.
std::string& unwritten_read() {
  static auto& text = *new std::string;
  return text;
}

Written& entry_of(const AllocationPointer& allocation) {
  constexpr size_t kMost = 64;
  if (written().size() >= kMost)
    std::erase_if(written(), [](const auto& one) { return one.second.is_of.expired(); });
  Written& of = written()[allocation.get()];
  if (of.is_of.lock() != allocation) of = {};  // of one that is gone
  of.is_of = allocation;
  if (counts) of.allocation = allocation;
  return of;
}

std::string place_of(const Location& where) {
  const char* const slash = std::strrchr(where.file, '/');
  return fmt::format("{}:{}", slash ? slash + 1 : where.file, where.line);
}

/// Of the allocation, which nobody has written there.
bool is_unknown(Written& of, const std::byte* begin) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  const auto& ranges = of.known.merged();
  return std::none_of(ranges.begin(), ranges.end(),
                      [&](const Ranges::Range& range) { return at >= range.begin && at < range.end; });
}

/// ", of which the upload at FILE:9 wrote bytes 0 to 3 alone".
std::string known_of(const Allocation& allocation, Written& of) {
  if (of.last_copy.empty() || !of.last_launch.empty() || of.known.merged().size() != 1) return "";
  const auto begin = reinterpret_cast<uintptr_t>(allocation.begin);
  const Ranges::Range range = of.known.merged()[0];
  return fmt::format(", of which {} wrote bytes {} to {} alone", of.last_copy, range.begin - begin,
                     range.end - 1 - begin);
}

struct Hole {
  size_t begin, end;
  bool operator==(const Hole&) const = default;
};

/// What these pieces of the allocation leave out.
std::vector<Hole> holes_of(const Written& of, Ranges& ranges) {
  const auto begin = reinterpret_cast<uintptr_t>(of.allocation->begin);
  std::vector<Hole> holes;
  size_t at = 0;
  for (const Ranges::Range& range : ranges.merged()) {
    if (range.begin - begin > at) holes.push_back({at, range.begin - begin});
    at = range.end - begin;
  }
  if (at < of.allocation->bytes) holes.push_back({at, of.allocation->bytes});
  return holes;
}

void note_download(const MemoryTable& memory, const Touch& touch) {
  const AllocationPointer allocation = memory.find(touch.begin);
  const auto found = allocation ? written().find(allocation.get()) : written().end();
  if (found == written().end() || !found->second.allocation || found->second.last_launch.empty()) return;
  Written& of = found->second;
  const auto begin = static_cast<size_t>(touch.begin - allocation->begin);
  for (const Hole& hole : holes_of(of, of.known))
    of.is_downloaded = of.is_downloaded || (hole.begin < begin + touch.bytes && begin < hole.end);
}

/// Holes of one length at one distance, as the columns of a matrix are that nobody computes. The last may be
/// shorter, where the memory ends.
bool are_regular(const std::vector<Hole>& holes) {
  for (size_t i = 1; i < holes.size(); ++i) {
    const size_t bytes = holes[i].end - holes[i].begin, usual = holes[0].end - holes[0].begin;
    if (holes[i].begin - holes[i - 1].begin != holes[1].begin - holes[0].begin) return false;
    if (bytes != usual && (i + 1 < holes.size() || bytes > usual)) return false;
  }
  return true;
}

std::string describe(const std::vector<Hole>& holes) {
  const auto range = [](size_t begin, size_t end) { return fmt::format("{} to {}", begin, end - 1); };
  if (holes.size() == 1) return "bytes " + range(holes[0].begin, holes[0].end) + " lack";
  if (are_regular(holes)) {
    const size_t period = holes[1].begin - holes[0].begin, first = holes[0].begin % period;
    return fmt::format("of every {} bytes, {} lack, {} times, as columns of a matrix do", period,
                       range(first, first + holes[0].end - holes[0].begin), holes.size());
  }
  return fmt::format("{} pieces lack, the first is bytes {}", holes.size(),
                     range(holes[0].begin, holes[0].end));
}

}  // namespace

void count_kernel_writes() { counts = true; }
bool counts_kernel_writes() { return counts; }

void add_kernel_writes(const MemoryTable& memory, const Operation& kernel, GlobalAccesses& accesses,
                       uint64_t blocks, uint64_t threads) {
  has_atomics |= accesses.has_atomics;
  std::sort(accesses.unwritten.begin(), accesses.unwritten.end(),
            [](const auto& one, const auto& other) { return one.address < other.address; });
  for (const GlobalAccesses::UnwrittenRead& read : accesses.unwritten) {
    const AllocationPointer allocation = memory.find_at(kernel.id, read.address);
    if (!allocation || allocation->kind != MemoryKind::device || !unwritten_read().empty()) continue;
    Written& of = entry_of(allocation);
    if (!is_unknown(of, read.address)) continue;
    unwritten_read() = fmt::format(
        "kernel {} read what nobody had written ({} at {}): byte {} of the {} bytes allocated at {}\n",
        kernel.name, read.what,
        read.return_address ? describe_call_site(reinterpret_cast<uintptr_t>(read.return_address))
                            : describe_place(read.where),
        read.address - allocation->begin, allocation->bytes,
        place_of(allocation->where) + known_of(*allocation, of));
  }
  for (const Ranges::Range& range : accesses.writes.merged()) {
    const AllocationPointer allocation =
        memory.find_at(kernel.id, reinterpret_cast<const void*>(range.begin));
    if (!allocation || allocation->kind != MemoryKind::device) continue;
    Written& of = entry_of(allocation);
    of.ranges.add(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
    of.known.add(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
    of.last_launch = fmt::format("the launch of {}{} has {} block{} and {} threads in all", kernel.name,
                                 kernel.where.line ? " at " + place_of(kernel.where) : "", blocks,
                                 blocks == 1 ? "" : "s", threads);
  }
}

void add_other_writes(const MemoryTable& memory, const Operation& operation) {
  for (const Touch& touch : operation.touches) {
    const AllocationPointer allocation = touch.write ? memory.find_at(operation.id, touch.begin) : nullptr;
    if (!touch.write && std::string_view(operation.kind) == "download") note_download(memory, touch);
    if (!allocation || operation.allocates() || operation.frees()) continue;
    Written& of = entry_of(allocation);
    of.known.add(touch.begin, touch.bytes);
    of.last_copy =
        operation.describe() + (operation.where.line ? " at " + describe_place(operation.where) : "");
  }
}

std::string take_unwritten_global() { return std::exchange(unwritten_read(), ""); }

std::string describe_partly_written(bool only_downloaded) {
  std::string text;
  size_t count = 0;
  for (auto& [key, of] : written()) {
    if (!of.allocation || of.last_launch.empty() || (only_downloaded && !of.is_downloaded)) continue;
    const std::vector<Hole> holes = holes_of(of, of.ranges);
    if (only_downloaded && holes != holes_of(of, of.known)) continue;
    if (holes.empty() || has_atomics || ++count > kMostAllocations) continue;
    size_t missing = 0;
    for (const Hole& hole : holes) missing += hole.end - hole.begin;
    text += fmt::format("kernels wrote {} of the {} bytes allocated at {}: {}; {}\n",
                        of.allocation->bytes - missing, of.allocation->bytes, place_of(of.allocation->where),
                        describe(holes), of.last_launch);
  }
  return text;
}

}  // namespace cpu_device
