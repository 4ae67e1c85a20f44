/// @file
/// Asynchronous operations in flight: when they land.
#include "common/cpu_device/kernel/engine_async.hpp"

#include <algorithm>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/reports.hpp"

namespace cpu_device {

bool Cluster::lands_now() {
  switch (options_.schedule.landing) {
    case Landing::late:
      return false;
    case Landing::eager:
      return true;
    case Landing::random:
      return random_.one_in(2);
  }
  return false;
}

std::string PendingOperation::missing() const { return explain_exit(*touched_block()); }

void Cluster::submit(std::unique_ptr<PendingOperation> operation) {
  arrivals_in_flight_ += operation->is_arrival();
  pending_.push_back(std::move(operation));
  if (options_.schedule.landing == Landing::eager) land(pending_.size() - 1);
}

/// Which of the operations in flight lands when nothing else can happen.
size_t Cluster::next_to_land() {
  if (options_.schedule.landing == Landing::random) return random_.below(pending_.size());
  const auto first = std::find_if(pending_.begin(), pending_.end(), [&](const auto& operation) {
    return !operation->lands_last() && !(arrivals_in_flight_ && operation->lands_after_arrivals());
  });
  return first == pending_.end() ? 0 : static_cast<size_t>(first - pending_.begin());
}

void Cluster::land_before_cluster_sync() {
  for (size_t i = 0; i < pending_.size();) {
    pending_[i]->is_arrival() && !pending_[i]->issuer->done ? land(i) : void(++i);
  }
}

void Cluster::land(size_t position) {
  if (const void* queue = pending_[position]->queue) {
    const auto first = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const auto& operation) { return operation->queue == queue; });
    position = static_cast<size_t>(first - pending_.begin());
  }
  const std::unique_ptr<PendingOperation> operation = std::move(pending_[position]);
  arrivals_in_flight_ -= operation->is_arrival();
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(position));
  count_work();
  operation->land(*this);
}

}  // namespace cpu_device
