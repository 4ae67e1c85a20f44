/// @file
/// From the operations of streams to lanes, a file and a table; the same on both devices.
#include "07_streams/timeline/host_trace.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <utility>

#include "common/host/base/json.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace lesson07 {
namespace {

size_t index_of(Engine engine) { return static_cast<size_t>(engine); }
const char* name_of(Engine engine) { return kEngineNames[index_of(engine)]; }

/// Adds the span to the first of the lanes, all like `model`, in which nothing overlaps it; to a new one if
/// there is none. Spans come in the order of their beginnings.
void add_to(std::vector<ladder::TraceLane>& lanes, const StreamSpan& span, const ladder::TraceLane& model) {
  const ladder::TraceEvent event = {span.name, name_of(span.engine), span.begin_us * 1000,
                                    span.end_us * 1000};
  for (ladder::TraceLane& lane : lanes)
    if (lane.events.back().end_ns <= event.begin_ns) {
      lane.events.push_back(event);
      return;
    }
  lanes.push_back(model);
  lanes.back().events.push_back(event);
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
    const auto at_once =
        std::count_if(running.begin(), running.begin() + index_of(Engine::host), [](int n) { return n > 0; });
    if (at_once >= 2) use.two_at_once_us += now - before;
    if (at_once >= 3) use.three_at_once_us += now - before;
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

std::vector<ladder::TraceLane> lanes_of_streams(const std::vector<ScheduleTimeline>& timelines) {
  std::vector<ladder::TraceLane> lanes;
  unsigned process = 0;
  for (const ScheduleTimeline& timeline : timelines)
    for (const auto& [device, spans] : by_device(timeline.spans)) {
      ladder::TraceLane model;
      model.process = process++;
      model.process_name = fmt::format("{}, {}: GPU {}", timeline.experiment, timeline.schedule, device);
      std::array<std::vector<ladder::TraceLane>, kEngineNames.size()> engines;
      std::vector<std::string> names;  // of streams, in the order of their first operations
      std::map<std::string, std::vector<ladder::TraceLane>> streams;
      for (const StreamSpan& span : spans) {
        model.name = std::string("engine: ") + name_of(span.engine);
        add_to(engines[index_of(span.engine)], span, model);
        model.name = span.stream;
        if (streams[span.stream].empty()) names.push_back(span.stream);
        add_to(streams[span.stream], span, model);
      }
      for (const auto& engine : engines) lanes.insert(lanes.end(), engine.begin(), engine.end());
      for (const std::string& name : names)
        lanes.insert(lanes.end(), streams[name].begin(), streams[name].end());
    }
  return lanes;
}

std::string to_trace_events(const std::vector<ScheduleTimeline>& timelines,
                            const ladder::TimelineFacts& facts) {
  using ladder::Json;
  Json metadata = Json::object();
  for (const auto& [name, value] : facts) metadata[name] = value;
  metadata["unit"] = "us";
  metadata["summary"] = Json::array();
  for (const ScheduleTimeline& timeline : timelines)
    for (const EngineUse& use : summarise(timeline.spans)) {
      Json busy;
      for (size_t engine = 0; engine < kEngineNames.size(); ++engine)
        busy[kEngineNames[engine]] = use.busy_us[engine];
      metadata["summary"].push_back({{"experiment", timeline.experiment},
                                     {"schedule", timeline.schedule},
                                     {"device", use.device},
                                     {"length_us", use.length_us},
                                     {"busy_us", busy},
                                     {"two_at_once_us", use.two_at_once_us},
                                     {"three_at_once_us", use.three_at_once_us}});
    }
  return ladder::to_trace_events(lanes_of_streams(timelines), metadata);
}

void print_summary(std::ostream& out, const std::vector<ScheduleTimeline>& timelines) {
  std::array<double, kEngineNames.size()> busy_us{};
  for (const ScheduleTimeline& timeline : timelines)
    for (const EngineUse& use : summarise(timeline.spans))
      for (size_t engine = 0; engine < busy_us.size(); ++engine) busy_us[engine] += use.busy_us[engine];
  std::vector<size_t> shown;  // the engines that did something; host functions only in the file
  for (size_t engine = 0; engine < index_of(Engine::host); ++engine)
    if (busy_us[engine] > 0) shown.push_back(engine);

  out << "How much of its time each engine was busy, and at least two or three of them at once\n";
  std::vector<ladder::Column> columns = {{"schedule", 24, false}, {"GPU", 3}, {"us", 9}};
  for (const size_t engine : shown) columns.push_back({kEngineNames[engine] + std::string(" %"), 8});
  columns.push_back({"two %", 5});
  columns.push_back({"three %", 7});
  ladder::Table table(out, columns);
  table.header();
  for (const ScheduleTimeline& timeline : timelines)
    for (const EngineUse& use : summarise(timeline.spans)) {
      const auto percent = [&](double us) {
        return ladder::fixed(use.length_us > 0 ? us / use.length_us * 100 : 0, 1);
      };
      std::vector<std::string> cells = {timeline.schedule, std::to_string(use.device),
                                        ladder::fixed(use.length_us, 1)};
      for (const size_t engine : shown) cells.push_back(percent(use.busy_us[engine]));
      cells.push_back(percent(use.two_at_once_us));
      cells.push_back(percent(use.three_at_once_us));
      table.row(cells);
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

}  // namespace lesson07
