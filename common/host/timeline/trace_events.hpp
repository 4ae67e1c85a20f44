/// @file
/// The file of a timeline: the Trace Event Format, which Perfetto and chrome://tracing open.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ladder {

/// What lasted from `begin_ns` to `end_ns`.
struct TraceEvent {
  std::string name, category;
  double begin_ns = 0, end_ns = 0;
};

/// One line of the picture. Lanes of one process stand together under the name that its first lane gives.
struct TraceLane {
  unsigned process = 0;
  std::string process_name, name;
  std::vector<TraceEvent> events;
};

/// Complete events ("ph": "X"); a lane is a thread. Times are written in microseconds, as the format wants,
/// to a tenth of a nanosecond.
/// @param metadata an object of what the file says besides
std::string to_trace_events(const std::vector<TraceLane>& lanes, const nlohmann::ordered_json& metadata);

}  // namespace ladder
