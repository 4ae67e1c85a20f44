/// @file
/// The streams that exist, and how reports speak of them.
#include <fmt/core.h>
#include <algorithm>
#include <map>

#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

std::string on_device(int device) { return device_count() > 1 ? " of device " + std::to_string(device) : ""; }

}  // namespace

StreamEngine::StreamEngine() {
  for (int number = 0; number < kMaxDevices; ++number) {
    CUstream_st& legacy = devices_[number].legacy;
    legacy.device = number;
    legacy.name = "the legacy stream" + on_device(number);
    legacy.is_legacy = true;
    legacy.number = take_lane();
  }
}

unsigned StreamEngine::take_lane() {
  // A number may serve again once everything to come is after what it stood for.
  const auto known = std::find_if(free_lanes_.begin(), free_lanes_.end(),
                                  [&](unsigned number) { return host_[number] >= ticks_[number]; });
  if (known != free_lanes_.end()) {
    const unsigned number = *known;
    free_lanes_.erase(known);
    return number;
  }
  ticks_.push_back(0);
  return static_cast<unsigned>(ticks_.size() - 1);
}

CUstream_st* StreamEngine::find(cudaStream_t stream, DefaultStream meaning, int device) {
  const bool is_zero = stream == nullptr;
  if (stream == cudaStreamLegacy || (is_zero && meaning == DefaultStream::legacy))
    return &devices_[device].legacy;
  if (stream == cudaStreamPerThread || is_zero) {
    auto& of_threads = devices_[device].per_thread;
    auto [entry, is_new] = of_threads.try_emplace(std::this_thread::get_id());
    if (is_new) {
      entry->second.device = device;
      const size_t number = of_threads.size();  // of the threads, in the order in which they came
      entry->second.name = "the per-thread stream" +
                           (number > 1 ? fmt::format(" of host thread {}", number) : "") + on_device(device);
      entry->second.number = take_lane();
    }
    return &entry->second;
  }
  return streams_.count(stream) ? stream : nullptr;
}

CUstream_st* StreamEngine::create_stream(int device, bool blocking, int priority) {
  if (streams_.empty()) streams_made_ = 0;
  auto* stream = new CUstream_st;
  stream->device = device;
  stream->is_blocking = blocking;
  stream->priority = priority;
  stream->name = fmt::format("stream {}{}", ++streams_made_, on_device(device));
  stream->number = take_lane();
  streams_.insert(stream);
  std::erase_if(waits_for_nothing_, [&](const WaitForNothing& wait) { return wait.stream == stream->name; });
  return stream;
}

void StreamEngine::destroy_stream(CUstream_st* stream) {
  if (stream->last && !host_knows(*stream->last)) {
    Device& home = devices_[stream->device];
    home.last_of_destroyed.push_back(stream->last);
    std::erase_if(home.last_of_destroyed_blocking,
                  [&](const OperationPointer& last) { return host_knows(*last); });
    if (stream->is_blocking) home.last_of_destroyed_blocking.push_back(stream->last);
  }
  streams_.erase(stream);
  give_lane_back(stream->number);
  delete stream;
}

CUstream_st* StreamEngine::create_builder(int device) {
  auto* stream = new CUstream_st;
  stream->device = device;
  streams_.insert(stream);
  return stream;
}

void StreamEngine::destroy_builder(CUstream_st* stream) {
  streams_.erase(stream);
  delete stream;
}

std::string StreamEngine::describe_queues() const {
  struct Queue {
    size_t operations = 0;
    const Operation* first = nullptr;
  };
  std::map<std::string, Queue> queues;
  for (const auto& [id, operation] : pending_) {
    Queue& queue = queues[operation->stream];
    if (!queue.operations++) queue.first = operation.get();
  }
  std::string text = "streams: ";
  for (const auto& [name, queue] : queues) {
    text += fmt::format("{}: {} queued, first {}; ", name, queue.operations, queue.first->describe());
  }
  for (const CUstream_st* stream : streams_) {
    if (stream->capture) text += stream->name + ": captures a graph, so nothing of it runs; ";
  }
  if (queues.empty() && text == "streams: ") return "streams: nothing is queued";
  return text.substr(0, text.size() - 2);
}

}  // namespace cpu_device
