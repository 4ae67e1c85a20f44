/// @file
/// Pieces of memory, merged where they meet.
#include "common/cpu_device/observe/global_accesses.hpp"

#include <algorithm>

namespace cpu_device {

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

}  // namespace cpu_device
