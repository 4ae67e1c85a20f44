/// @file
/// Timelines of streams: what lanes, figures and a file are made of hand-made operations.
#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "07_streams/timeline/host_trace.hpp"
#include "common/host/base/json.hpp"

using lesson07::Engine;
using lesson07::StreamSpan;

namespace {

/// Three batches, each on a stream of its own: upload 10 us, kernel 20 us, download 10 us.
std::vector<StreamSpan> three_batches() {
  return {{0, "stream 0", Engine::upload, "upload 0", 0, 10},
          {0, "stream 0", Engine::compute, "gemm", 10, 30},
          {0, "stream 1", Engine::upload, "upload 1", 10, 20},
          {0, "stream 2", Engine::upload, "upload 2", 35, 45},
          {0, "stream 1", Engine::compute, "gemm", 30, 50},
          {0, "stream 0", Engine::download, "download 0", 30, 40},
          {0, "stream 1", Engine::download, "download 1", 50, 60},
          {0, "stream 2", Engine::compute, "gemm", 50, 70},
          {0, "stream 2", Engine::download, "download 2", 70, 80}};
}

double busy(const lesson07::EngineUse& use, Engine engine) {
  return use.busy_us[static_cast<size_t>(engine)];
}

/// One schedule of this name, on any number of devices.
std::vector<lesson07::ScheduleTimeline> timeline_of(std::vector<StreamSpan> spans) {
  return {{"levels", "streams", std::move(spans)}};
}

std::vector<std::string> names(const std::vector<ladder::TraceLane>& lanes) {
  std::vector<std::string> result;
  for (const ladder::TraceLane& lane : lanes) result.push_back(lane.name);
  return result;
}

}  // namespace

TEST_CASE("An engine is busy while it has an operation, and what overlaps is counted in two and in three") {
  const auto uses = lesson07::summarise(three_batches());
  REQUIRE(uses.size() == 1);
  CHECK(uses[0].length_us == 80);
  CHECK(busy(uses[0], Engine::upload) == 30);
  CHECK(busy(uses[0], Engine::compute) == 60);
  CHECK(busy(uses[0], Engine::download) == 30);
  CHECK(uses[0].two_at_once_us == 10 + 10 + 5 + 10);  // from 10, 30, 40 and 50 us on
  CHECK(uses[0].three_at_once_us == 5);               // from 35 to 40 us
}

TEST_CASE("Operations that take turns overlap nowhere, not even where one ends as the next begins") {
  const auto uses = lesson07::summarise({{0, "stream 0", Engine::upload, "upload", 0, 10},
                                         {0, "stream 0", Engine::compute, "gemm", 10, 30},
                                         {0, "stream 0", Engine::download, "download", 30, 40}});
  CHECK(uses.at(0).two_at_once_us == 0);
  CHECK(uses.at(0).three_at_once_us == 0);
}

TEST_CASE("Two operations of an engine at once are counted once") {
  const auto uses = lesson07::summarise(
      {{0, "stream 0", Engine::compute, "a", 0, 10}, {0, "stream 1", Engine::compute, "b", 5, 20}});
  CHECK(busy(uses.at(0), Engine::compute) == 20);
  CHECK(uses.at(0).two_at_once_us == 0);
}

TEST_CASE("Copies between devices and all-reduces overlap like other engines, host functions do not count") {
  const auto uses = lesson07::summarise({{0, "stream 0", Engine::compute, "gemm", 0, 40},
                                         {0, "stream 1", Engine::all_reduce, "sum", 10, 20},
                                         {0, "stream 2", Engine::peer_copy, "copy", 15, 30},
                                         {0, "host functions", Engine::host, "recycle", 32, 40}});
  CHECK(uses.at(0).two_at_once_us == 20);
  CHECK(uses.at(0).three_at_once_us == 5);
}

TEST_CASE("Without operations there is nothing to say") {
  CHECK(lesson07::summarise({}).empty());
  CHECK(lesson07::lanes_of_streams(timeline_of({})).empty());
}

TEST_CASE("A device has lanes for its engines, then for its streams") {
  const auto lanes = lesson07::lanes_of_streams(timeline_of(three_batches()));
  CHECK(names(lanes) == std::vector<std::string>{"engine: upload", "engine: compute", "engine: download",
                                                 "stream 0", "stream 1", "stream 2"});
  CHECK(lanes[0].process_name == "levels, streams: GPU 0");
  REQUIRE(lanes[3].events.size() == 3);
  CHECK(lanes[3].events[1].name == "gemm");
  CHECK(lanes[3].events[1].category == "compute");
  CHECK(lanes[3].events[1].begin_ns == 10'000);
}

TEST_CASE("What overlaps in a lane goes to a second one") {
  const auto lanes = lesson07::lanes_of_streams(timeline_of({{0, "stream 0", Engine::compute, "a", 0, 10},
                                                             {0, "stream 1", Engine::compute, "b", 5, 20},
                                                             {0, "stream 0", Engine::compute, "c", 10, 12}}));
  CHECK(names(lanes) ==
        std::vector<std::string>{"engine: compute", "engine: compute", "stream 0", "stream 1"});
  CHECK(lanes[0].events.size() == 2);
  CHECK(lanes[1].events.size() == 1);
}

TEST_CASE("Each device of each schedule is a process of the file, and has its own figures") {
  auto timelines = timeline_of(three_batches());
  timelines.push_back({"peers", "events", {{0, "stream 0", Engine::compute, "gemm", 0, 40}}});
  timelines.back().spans.push_back({1, "stream 0", Engine::peer_copy, "copy", 40, 60});
  const auto json = ladder::parse_json(lesson07::to_trace_events(timelines, {{"batches", "3"}}));
  int complete = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++complete;
    if (event.at("name") != "copy") continue;
    CHECK(event.at("pid") == 2);
    CHECK(event.at("cat") == "peer copy");
    CHECK(event.at("ts") == 40);
    CHECK(event.at("dur") == 20);
  }
  CHECK(complete == 2 * (9 + 2));  // in the lane of the engine and in that of the stream
  const auto& metadata = json.at("metadata");
  CHECK(metadata.at("batches") == "3");
  REQUIRE(metadata.at("summary").size() == 3);
  CHECK(metadata.at("summary").at(0).at("three_at_once_us") == 5);
  CHECK(metadata.at("summary").at(0).at("busy_us").at("compute") == 60);
  CHECK(metadata.at("summary").at(2).at("schedule") == "events");
  CHECK(metadata.at("summary").at(2).at("device") == 1);
  CHECK(metadata.at("summary").at(2).at("busy_us").at("peer copy") == 20);
}

TEST_CASE("The table has columns for the engines that did something, in percent of the device's time") {
  std::ostringstream out;
  lesson07::print_summary(out, timeline_of(three_batches()));
  CHECK(out.str().find("37.5") != std::string::npos);  // upload
  CHECK(out.str().find("75.0") != std::string::npos);  // compute
  CHECK(out.str().find("43.8") != std::string::npos);  // two at once: 35 of 80 us
  CHECK(out.str().find("peer copy") == std::string::npos);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}
