/// @file
/// From the operations of streams to lanes, a file and a table; the same on both devices.
#include "07_streams/host_trace.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/host/atomic_file.hpp"
#include "common/host/results.hpp"
#include "common/host/table.hpp"
#include "common/host/text.hpp"

namespace lesson07 {
namespace {

size_t index_of(Engine engine) { return static_cast<size_t>(engine); }
const char* name_of(Engine engine) { return kEngineNames[index_of(engine)]; }

/// Adds the span to the first of the lanes, all of one name, in which nothing overlaps it; to a new one if
/// there is none. Spans come in the order of their beginnings.
void add_to(std::vector<ladder::TraceLane>& lanes, const StreamSpan& span, const std::string& lane_name) {
  const ladder::TraceEvent event = {span.name, name_of(span.engine), span.begin_us * 1000,
                                    span.end_us * 1000};
  for (ladder::TraceLane& lane : lanes)
    if (lane.events.back().end_ns <= event.begin_ns) {
      lane.events.push_back(event);
      return;
    }
  lanes.push_back(
      {static_cast<unsigned>(span.device), "GPU " + std::to_string(span.device), lane_name, {event}});
}

std::vector<StreamSpan> in_order(std::vector<StreamSpan> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const StreamSpan& a, const StreamSpan& b) { return a.begin_us < b.begin_us; });
  return spans;
}

std::map<int, std::vector<StreamSpan>> by_device(const std::vector<StreamSpan>& spans) {
  std::map<int, std::vector<StreamSpan>> devices;
  for (const StreamSpan& span : in_order(spans)) devices[span.device].push_back(span);
  return devices;
}

/// The engines of one device: at every moment at which an operation begins or ends, how many each carries
/// out.
EngineUse use_of(int device, const std::vector<StreamSpan>& spans) {
  std::vector<std::pair<double, std::pair<size_t, int>>> changes;  // when, {engine, +1 or -1}
  for (const StreamSpan& span : spans) {
    changes.push_back({span.begin_us, {index_of(span.engine), +1}});
    changes.push_back({span.end_us, {index_of(span.engine), -1}});
  }
  std::sort(changes.begin(), changes.end());

  EngineUse use;
  use.device = device;
  use.length_us = changes.back().first - changes.front().first;
  std::array<int, kEngineNames.size()> running{};
  double before = changes.front().first;
  for (const auto& [now, change] : changes) {
    for (size_t engine = 0; engine < running.size(); ++engine)
      if (running[engine] > 0) use.busy_us[engine] += now - before;
    int at_once = 0;
    for (const Engine engine : {Engine::upload, Engine::compute, Engine::download})
      at_once += running[index_of(engine)] > 0;
    if (at_once >= 2) use.two_at_once_us += now - before;
    if (at_once == 3) use.three_at_once_us += now - before;
    running[change.first] += change.second;
    before = now;
  }
  return use;
}

}  // namespace

std::vector<EngineUse> summarise(const std::vector<StreamSpan>& spans) {
  std::vector<EngineUse> result;
  for (const auto& [device, of_device] : by_device(spans)) result.push_back(use_of(device, of_device));
  return result;
}

std::vector<ladder::TraceLane> lanes_of_streams(const std::vector<StreamSpan>& spans) {
  std::vector<ladder::TraceLane> lanes;
  for (const auto& [device, of_device] : by_device(spans)) {
    std::array<std::vector<ladder::TraceLane>, kEngineNames.size()> engines;
    std::vector<std::string> names;  // of streams, in the order of their first operations
    std::map<std::string, std::vector<ladder::TraceLane>> streams;
    for (const StreamSpan& span : of_device) {
      add_to(engines[index_of(span.engine)], span, std::string("engine: ") + name_of(span.engine));
      if (streams[span.stream].empty()) names.push_back(span.stream);
      add_to(streams[span.stream], span, span.stream);
    }
    for (const auto& engine : engines) lanes.insert(lanes.end(), engine.begin(), engine.end());
    for (const std::string& name : names)
      lanes.insert(lanes.end(), streams[name].begin(), streams[name].end());
  }
  return lanes;
}

std::string to_trace_events(const std::vector<StreamSpan>& spans, const ladder::TimelineFacts& facts) {
  using Json = nlohmann::ordered_json;
  Json metadata = Json::object();
  for (const auto& [name, value] : facts) metadata[name] = value;
  metadata["unit"] = "us";
  metadata["summary"] = Json::array();
  for (const EngineUse& use : summarise(spans)) {
    Json busy;
    for (size_t engine = 0; engine < kEngineNames.size(); ++engine)
      busy[kEngineNames[engine]] = use.busy_us[engine];
    metadata["summary"].push_back({{"device", use.device},
                                   {"length_us", use.length_us},
                                   {"busy_us", busy},
                                   {"two_at_once_us", use.two_at_once_us},
                                   {"three_at_once_us", use.three_at_once_us}});
  }
  return ladder::to_trace_events(lanes_of_streams(spans), metadata);
}

void print_summary(std::ostream& out, const std::vector<StreamSpan>& spans) {
  for (const EngineUse& use : summarise(spans)) {
    out << "GPU " << use.device << ": " << ladder::fixed(use.length_us, 1)
        << " us from its first operation to the end of its last\n";
    ladder::Table table(out, {{"", 34, false}, {"busy us", 12}, {"busy %", 7}});
    table.header();
    const auto row = [&](const std::string& what, double us) {
      const double percent = use.length_us > 0 ? us / use.length_us * 100 : 0;
      table.row({what, ladder::fixed(us, 1), ladder::fixed(percent, 1)});
    };
    for (size_t engine = 0; engine < kEngineNames.size(); ++engine)
      if (use.busy_us[engine] > 0) row(kEngineNames[engine], use.busy_us[engine]);
    row("two of upload, compute, download", use.two_at_once_us);
    row("all three at once", use.three_at_once_us);
  }
}

HostTrace::~HostTrace() {
  if (!running_) return;
  try {
    stop();
  } catch (const std::exception&) {
    // A destructor has nobody to tell; who wants the spans calls stop().
  }
}

void HostTrace::write(const std::string& path, const ladder::TimelineFacts& facts) const {
  const ladder::ResultFile here = ladder::new_result_file();
  ladder::TimelineFacts all = {{"lesson", "07_streams"},
                               {"device", here.gpu},
                               {"toolkit", here.toolkit},
                               {"commit", here.commit},
                               {"date", here.date}};
  all.insert(all.end(), facts.begin(), facts.end());
  ladder::write_file_atomically("--trace", path,
                                [&](std::ostream& file) { file << to_trace_events(spans_, all); });
}

}  // namespace lesson07
