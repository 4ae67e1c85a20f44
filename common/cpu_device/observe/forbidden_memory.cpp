/// @file
/// Remembers the zones, and looks accesses up in them.
#include "common/cpu_device/observe/forbidden_memory.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <limits>

#include "common/cpu_device/cpu_device.hpp"

namespace cpu_device {

std::string NamedMatrix::describe_place(int64_t begin) const {
  if (!element_bytes) return "";
  std::string text = fmt::format(", which holds {}, {} x {}", name, rows, columns);
  const int64_t element = begin / static_cast<int64_t>(element_bytes);
  if (element < 0) return text;
  // What is right of the last row lies behind it, too, as far as a tile may reach.
  constexpr int64_t kWidestTile = 256;
  const int64_t row = element / columns, column = element % columns,
                right = element - int64_t{rows - 1} * columns;
  const bool may_be_right = right >= columns && right < columns + kWidestTile;
  return text + (may_be_right
                     ? fmt::format(": column {} of its last row, or column {} of row {}: is the column, or "
                                   "the row, not tested?",
                                   right, column, row)
                     : fmt::format(": column {} of row {}", column, row));
}

std::string ForbiddenZone::describe(const void* address, size_t accessed) const {
  const auto first = reinterpret_cast<uintptr_t>(address);
  const uintptr_t last = first + accessed, end_of_allocation = allocation + bytes;
  if (is_null())
    return first ? fmt::format("follows a null pointer, to address {:#x}", first) : "follows a null pointer";
  if (freed) return "touches " + name + ", which was freed";
  const std::string place = matrix.describe_place(static_cast<int64_t>(first - allocation));
  if (first < allocation)
    return "begins " + std::to_string(allocation - first) + " bytes before " + name + place;
  return "reaches " + std::to_string(last - end_of_allocation) + " bytes beyond the end of " + name + place;
}

ForbiddenMemory& ForbiddenMemory::instance() {
  static auto& memory = *new ForbiddenMemory;  // memory is freed until the very end
  return memory;
}

ForbiddenMemory::ForbiddenMemory() {
  constexpr uintptr_t kNullBytes = 64 * 1024;  // no system maps them
  zones_[0].end = kNullBytes;
}

void ForbiddenMemory::forbid(const ForbiddenZone& zone) {
  if (zone.begin == zone.end) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  zones_[zone.begin] = zone;
  snapshot_.reset();
}

void ForbiddenMemory::allow(uintptr_t begin, uintptr_t end) {
  const std::lock_guard<std::mutex> lock(mutex_);
  zones_.erase(zones_.lower_bound(begin), zones_.lower_bound(end));
  snapshot_.reset();
}

void ForbiddenMemory::name(uintptr_t allocation, const NamedMatrix& matrix) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [begin, zone] : zones_)
    if (zone.allocation == allocation && !zone.is_null() && !zone.freed) zone.matrix = matrix;
  snapshot_.reset();
}

void name_matrix(const void* first, const std::string& name, int rows, int columns, size_t element_bytes) {
  ForbiddenMemory::instance().name(reinterpret_cast<uintptr_t>(first), {name, rows, columns, element_bytes});
}

std::shared_ptr<const ForbiddenMemory::Zones> ForbiddenMemory::snapshot() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!snapshot_) {
    Zones zones;
    for (const auto& [begin, zone] : zones_) zones.push_back(zone);
    snapshot_ = std::make_shared<const Zones>(std::move(zones));
  }
  return snapshot_;
}

bool MemoryGuard::is_allocated(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto next =
      std::upper_bound(zones_->begin(), zones_->end(), address,
                       [](uintptr_t place, const ForbiddenZone& zone) { return place < zone.end; });
  return next != zones_->end() && !next->freed && address >= next->allocation &&
         address < next->allocation + next->bytes;
}

std::string MemoryGuard::name_place(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const ForbiddenZone& zone : *zones_)
    if (!zone.freed && !zone.name.empty() && address >= zone.allocation &&
        address < zone.allocation + zone.bytes)
      return fmt::format("byte {} of {}", address - zone.allocation, zone.name);
  return "";
}

const ForbiddenZone* MemoryGuard::look_up(uintptr_t address, size_t bytes) {
  const auto next =
      std::upper_bound(zones_->begin(), zones_->end(), address,
                       [](uintptr_t place, const ForbiddenZone& zone) { return place < zone.end; });
  if (next != zones_->end() && next->begin < address + bytes) return &*next;
  recent_[oldest_++ % kRecent] = {
      next == zones_->begin() ? 0 : std::prev(next)->end,
      next == zones_->end() ? std::numeric_limits<uintptr_t>::max() : next->begin};
  return nullptr;
}

}  // namespace cpu_device
