/// @file
/// Which bytes of each allocation kernels have written.
#include "common/cpu_device/streams/kernel_writes.hpp"

#include <fmt/core.h>
#include <atomic>
#include <cstring>
#include <map>
#include <vector>

namespace cpu_device {
namespace {

constexpr size_t kMostAllocations = 4;

struct Written {
  AllocationPointer allocation;  ///< also of one that was freed
  Ranges ranges;
};
std::map<const Allocation*, Written>& written() {
  static auto& all = *new std::map<const Allocation*, Written>;
  return all;
}
std::atomic<bool> counts = false;
bool has_atomics = false;

struct Hole {
  size_t begin, end;
};

std::vector<Hole> holes_of(Written& of) {
  const auto begin = reinterpret_cast<uintptr_t>(of.allocation->begin);
  std::vector<Hole> holes;
  size_t at = 0;
  for (const Ranges::Range& range : of.ranges.merged()) {
    if (range.begin - begin > at) holes.push_back({at, range.begin - begin});
    at = range.end - begin;
  }
  if (at < of.allocation->bytes) holes.push_back({at, of.allocation->bytes});
  return holes;
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

void add_kernel_writes(const MemoryTable& memory, Ranges& writes, bool atomically) {
  has_atomics |= atomically;
  for (const Ranges::Range& range : writes.merged()) {
    const AllocationPointer allocation = memory.find(reinterpret_cast<const void*>(range.begin));
    if (!allocation || allocation->kind != MemoryKind::device) continue;
    Written& of = written()[allocation.get()];
    of.allocation = allocation;
    of.ranges.add(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
  }
}

std::string describe_partly_written() {
  std::string text;
  size_t count = 0;
  for (auto& [key, of] : written()) {
    const std::vector<Hole> holes = holes_of(of);
    if (holes.empty() || has_atomics || ++count > kMostAllocations) continue;
    size_t missing = 0;
    for (const Hole& hole : holes) missing += hole.end - hole.begin;
    const Location& where = of.allocation->where;
    const char* const slash = std::strrchr(where.file, '/');
    text += fmt::format("kernels wrote {} of the {} bytes allocated at {}:{}: {}\n",
                        of.allocation->bytes - missing, of.allocation->bytes, slash ? slash + 1 : where.file,
                        where.line, describe(holes));
  }
  return text;
}

}  // namespace cpu_device
