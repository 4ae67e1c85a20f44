/// @file
/// Writes lanes as trace events.
#include "common/host/timeline/trace_events.hpp"

#include <cmath>
#include <set>

#include "common/host/base/json.hpp"

namespace ladder {

std::string to_trace_events(const std::vector<TraceLane>& lanes, const Json& metadata) {
  const auto tenths = [](double ns) { return std::round(ns * 10); };  // so that spans that touch still do
  constexpr double kTenthsPerMicrosecond = 10'000;
  Json events = Json::array();
  const auto add_name = [&](const char* what, unsigned process, size_t thread, const std::string& name) {
    events.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
  };
  std::set<unsigned> processes;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const TraceLane& lane = lanes[i];
    if (processes.insert(lane.process).second) add_name("process_name", lane.process, i, lane.process_name);
    add_name("thread_name", lane.process, i, lane.name);
    events.push_back({{"name", "thread_sort_index"},
                      {"ph", "M"},
                      {"pid", lane.process},
                      {"tid", i},
                      {"args", {{"sort_index", i}}}});
    for (const TraceEvent& event : lane.events)
      events.push_back({{"name", event.name},
                        {"cat", event.category},
                        {"ph", "X"},
                        {"pid", lane.process},
                        {"tid", i},
                        {"ts", tenths(event.begin_ns) / kTenthsPerMicrosecond},
                        {"dur", (tenths(event.end_ns) - tenths(event.begin_ns)) / kTenthsPerMicrosecond}});
  }
  const Json file = {{"traceEvents", events}, {"displayTimeUnit", "ns"}, {"metadata", metadata}};
  return json_text(file) + "\n";
}

}  // namespace ladder
