/// @file
/// Clocks and ranges of operations.
#include "common/cpu_device/stream_operation.hpp"

#include <algorithm>

namespace cpu_device {

void OrderClock::raise(unsigned lane, uint64_t tick) {
  if (lane >= ticks_.size()) ticks_.resize(lane + 1);
  ticks_[lane] = std::max(ticks_[lane], tick);
}

void OrderClock::join(const OrderClock& other) {
  if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
}

void OrderClock::meet(const OrderClock& other) {
  if (ticks_.size() > other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (size_t i = 0; i < ticks_.size(); ++i) ticks_[i] = std::min(ticks_[i], other.ticks_[i]);
}

bool OrderClock::covers(const OrderClock& other) const {
  for (unsigned lane = 0; lane < other.ticks_.size(); ++lane) {
    if ((*this)[lane] < other.ticks_[lane]) return false;
  }
  return true;
}

std::string Operation::describe() const {
  if (std::string(kind) == "kernel") return "kernel " + name + " on " + stream;
  return std::string("the ") + (is_host_function ? "host function" : kind) + " on " + stream;
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

}  // namespace cpu_device
