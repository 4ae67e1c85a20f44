/// @file
/// Virtual time of streams: what an H200's engines would take for the same work. It shows what overlaps and
/// what waits, for tests and for reading; it is no prediction.
#include <algorithm>
#include <utility>

#include "common/cpu_device/streams/stream_engine.hpp"
#include "common/cpu_device/streams/stream_model.hpp"

namespace cpu_device {
namespace {

/// Spans that nobody takes are not kept for ever.
constexpr size_t kMaxSpans = 1 << 20;

}  // namespace

void StreamEngine::advance_time() {
  while (!untimed_.empty() && untimed_.front()->done) {
    const OperationPointer operation = std::move(untimed_.front());
    untimed_.pop_front();
    double begin = operation->not_before_us;
    for (const auto& before : operation->starts_after) begin = std::max(begin, before->us);
    operation->starts_after.clear();
    if (operation->engine != Engine::none) {
      double& free = engine_free_us_[operation->device][static_cast<size_t>(operation->engine)];
      begin = std::max(begin, free);
      free = begin + operation->us;
    }
    operation->end->us = begin + operation->us;
    operation->end->is_known = true;
    latest_us_ = std::max(latest_us_, operation->end->us);
    if (operation->is_on_timeline && spans_.size() < kMaxSpans) {
      spans_.push_back({operation->device, operation->stream, operation->kind, operation->name, begin,
                        operation->end->us});
    }
  }
}

std::vector<StreamSpan> StreamEngine::take_spans() {
  run_everything();
  advance_time();
  return std::exchange(spans_, {});
}

double StreamEngine::time_us() {
  run_everything();
  advance_time();
  return latest_us_;
}

}  // namespace cpu_device
