/// @file
/// The CPU device records streams by itself, in virtual time.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "07_streams/timeline/host_trace.hpp"
#include "common/cpu_device/cpu_device.hpp"

namespace lesson07 {
namespace {

/// @param kind a word of cpu_device::StreamSpan
Engine engine_of(const std::string& kind) {
  constexpr std::array<std::pair<const char*, Engine>, 7> kEngines = {{{"upload", Engine::upload},
                                                                       {"download", Engine::download},
                                                                       {"copy", Engine::peer_copy},
                                                                       {"kernel", Engine::compute},
                                                                       {"memset", Engine::compute},
                                                                       {"allreduce", Engine::all_reduce},
                                                                       {"host", Engine::host}}};
  for (const auto& [name, engine] : kEngines)
    if (kind == name) return engine;
  throw std::logic_error("the CPU device's trace has a span of kind \"" + kind + "\"");
}

}  // namespace

void HostTrace::start() {
  cpu_device::take_stream_trace();  // Forget what was before.
  running_ = true;
}

void HostTrace::stop() {
  running_ = false;
  spans_.clear();
  for (const cpu_device::StreamSpan& span : cpu_device::take_stream_trace())
    spans_.push_back({span.device, span.stream, engine_of(span.kind), span.name, span.begin_us, span.end_us});
  std::stable_sort(spans_.begin(), spans_.end(),
                   [](const StreamSpan& a, const StreamSpan& b) { return a.begin_us < b.begin_us; });
  const double first_us = spans_.empty() ? 0 : spans_.front().begin_us;
  for (StreamSpan& span : spans_) {
    span.begin_us -= first_us;
    span.end_us -= first_us;
  }
}

HostFunctionSpan::HostFunctionSpan(const char* name, int device)
    : name_(name), device_(device), begin_ns_(0) {}
HostFunctionSpan::~HostFunctionSpan() {}

}  // namespace lesson07
