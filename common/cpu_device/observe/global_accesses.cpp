/// @file
/// Pieces of memory, merged where they meet.
#include "common/cpu_device/observe/global_accesses.hpp"

#include <algorithm>
#include <map>

#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

/// The end of each, by its beginning.
std::map<const std::byte*, const std::byte*>& device_variables() {
  static auto& variables = *new std::map<const std::byte*, const std::byte*>;
  return variables;
}

}  // namespace

void add_device_variable(const void* begin, size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(begin);
  device_variables()[first] = first + bytes;
}

bool is_device_variable(const void* address) {
  auto after = device_variables().upper_bound(static_cast<const std::byte*>(address));
  return after != device_variables().begin() && address < (--after)->second;
}

void Ranges::add(const Ranges& other) {
  for (const Range& range : other.ranges_)
    add(reinterpret_cast<const void*>(range.begin), range.end - range.begin);
}

const std::vector<Ranges::Range>& Ranges::merged() {
  merge();
  return ranges_;
}

void Ranges::merge() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& one, const Range& other) { return one.begin < other.begin; });
  size_t kept = 0;
  for (const Range& range : ranges_) {
    if (kept && range.begin <= ranges_[kept - 1].end) {
      ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, range.end);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
  merge_at_ = std::max<size_t>(4096, 2 * kept);
}

std::string AccessesOfPlace::describe() const {
  if (return_address) return describe_call_site(reinterpret_cast<uintptr_t>(return_address));
  return short_path(where.file) + ":" + std::to_string(where.line);
}

AccessesOfPlace& AccessesByPlace::at(Location where, const void* return_address, bool write) {
  if (last_ < all_.size()) {  // the rows of a box come one after the other
    AccessesOfPlace& known = all_[last_];
    if (known.return_address == return_address && known.write == write && known.where.file == where.file &&
        known.where.line == where.line)
      return known;
  }
  for (last_ = 0; last_ < all_.size(); ++last_) {
    AccessesOfPlace& known = all_[last_];
    if (known.return_address == return_address && known.write == write && known.where == where) return known;
  }
  return all_.emplace_back(AccessesOfPlace{where, return_address, write, {}});
}

void AccessesByPlace::add(const void* begin, size_t bytes, bool write, Location where,
                          const void* return_address) {
  at(where, return_address, write).ranges.add(begin, bytes);
}

void AccessesByPlace::add(const AccessesByPlace& other) {
  for (const AccessesOfPlace& place : other.all_)
    at(place.where, place.return_address, place.write).ranges.add(place.ranges);
}

void GlobalAccesses::remember_read(const UnwrittenRead& read) {
  constexpr size_t kMost = 16, kMostLooks = 1024;
  const auto at = reinterpret_cast<uintptr_t>(read.address);
  if (unwritten.size() == kMost || ++looks_ > kMostLooks) return;
  for (const Ranges::Range& range : writes.merged())
    if (at >= range.begin && at < range.end) return;
  unwritten.push_back(read);
}

void GlobalAccesses::add(const GlobalAccesses& other) {
  unwritten.insert(unwritten.end(), other.unwritten.begin(), other.unwritten.end());
  reads.add(other.reads);
  writes.add(other.writes);
  early.add(other.early);
  copied.add(other.copied);
  read_only.add(other.read_only);
  has_atomics |= other.has_atomics;
  waited_for_grid_before |= other.waited_for_grid_before;
}

}  // namespace cpu_device
