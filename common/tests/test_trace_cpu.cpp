/// @file
/// Timelines of real lessons on the CPU device: what the lessons claim to overlap does, and what they cannot
/// overlap does not.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "common/host/base/json.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/run_lesson.hpp"
#include "common/testing/temporary_directory.hpp"

using ladder::Json;
using ladder::testing::TemporaryDirectory;

namespace {

const ladder::Lesson& lesson_named(const std::string& name) {
  for (const ladder::Lesson* lesson : ladder::all_lessons())
    if (lesson->name == name) return *lesson;
  throw std::invalid_argument("no lesson " + name);
}

int run(const std::string& lesson, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), lesson);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return ladder::run_lesson(lesson_named(lesson), static_cast<int>(arguments.size()), argv.data());
}

/// The timeline that `lesson --trace` writes.
Json trace_of(const std::string& lesson, std::vector<std::string> arguments) {
  const TemporaryDirectory directory;
  arguments.insert(arguments.end(), {"--trace", directory.file("t.json")});
  REQUIRE(run(lesson, arguments) == ladder::kExitOk);
  std::ifstream file(directory.file("t.json"));
  return ladder::parse_json(file);
}

struct Event {
  int lane;
  std::string name, kind;
  double begin, end;
};

std::vector<Event> events_of(const Json& json) {
  std::vector<Event> events;
  for (const Json& event : json.at("traceEvents"))
    if (event.at("ph") == "X") {
      const double begin = event.at("ts"), length = event.at("dur");
      events.push_back({event.at("tid"), event.at("name"), event.at("cat"), begin, begin + length});
    }
  return events;
}

/// Microseconds in which a span of this name runs and one of that name does too.
double overlap(const std::vector<Event>& events, const std::string& one, const std::string& other) {
  double sum = 0;
  for (const Event& a : events)
    for (const Event& b : events)
      if (a.name == one && b.name == other)
        sum += std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  return sum;
}

/// The same for two lanes and one name, as a share of its time in the first.
double overlap_of_lanes(const Json& json, int one, int other, const std::string& name) {
  double sum = 0, in_first = 0;
  for (const Event& a : events_of(json)) {
    if (a.lane != one || a.name != name) continue;
    in_first += a.end - a.begin;
    for (const Event& b : events_of(json))
      if (b.lane == other && b.name == name)
        sum += std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  }
  return sum / in_first;
}

std::vector<std::string> lane_names(const Json& json) {
  std::vector<std::string> names;
  for (const Json& event : json.at("traceEvents"))
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  return names;
}

double of_role(const Json& json, const std::string& role, const std::string& kind) {
  for (const Json& entry : json.at("metadata").at("summary"))
    if (entry.at("role") == role) return entry.at("per_tile").at(kind);
  throw std::invalid_argument("no role " + role);
}

void check_lanes(const Json& json) {
  std::map<int, double> end_of_lane;
  for (const Event& event : events_of(json)) {
    CHECK(event.begin <= event.end);
    CHECK(event.begin >= end_of_lane[event.lane] - 1e-9);
    end_of_lane[event.lane] = event.end;
  }
}

}  // namespace

TEST_CASE("03: with two slots copies run while products do, with one slot never") {
  const std::vector<std::string> problem = {"--shape", "128x128x512", "--no-verify", "--slots"};
  auto two = problem, one = problem;
  two.push_back("2");
  one.push_back("1");
  const Json with_two = trace_of("03_double_buffer", two), with_one = trace_of("03_double_buffer", one);
  CHECK(overlap(events_of(with_two), "copy", "mma") > 0);
  CHECK(overlap(events_of(with_one), "copy", "mma") < 1e-9);
  check_lanes(with_two);
  check_lanes(with_one);
}

TEST_CASE("03: every warpgroup has a lane for its threads, its copies and its products") {
  const Json json = trace_of("03_double_buffer", {"--size", "128"});
  CHECK(lane_names(json) == std::vector<std::string>{"warpgroup 0", "warpgroup 0: copies in flight",
                                                     "warpgroup 0: products in flight", "warpgroup 1",
                                                     "warpgroup 1: copies in flight",
                                                     "warpgroup 1: products in flight"});
  CHECK(json.at("metadata").at("summary").at(0).at("tiles") == 1);
  CHECK(json.at("metadata").at("unit") == "cycles");
}

TEST_CASE("04 and 05: the loader of one slot waits, that of a ring runs ahead") {
  const std::vector<std::string> problem = {"--shape", "128x256x1024", "--no-verify"};
  const Json one_slot = trace_of("04_warp_specialized", problem),
             ring = trace_of("05_ws_double_buffer", problem);
  for (const Json& json : {one_slot, ring}) {
    check_lanes(json);
    const auto names = lane_names(json);
    for (const std::string role : {"compute 0", "compute 1", "loader"})
      CHECK(std::count(names.begin(), names.end(), role) == 1);
    CHECK(of_role(json, "compute 0", "compute") > 0);
    CHECK(of_role(json, "loader", "load") > 0);
  }
  CHECK(of_role(ring, "loader", "wait") < of_role(one_slot, "loader", "wait"));
  CHECK(overlap(events_of(one_slot), "copy", "mma") < 1e-9);  // microseconds, rounded to 1e-4
  CHECK(overlap(events_of(ring), "copy", "mma") > 0);
}

TEST_CASE("05: consumers that take turns multiply one after the other") {
  const auto timeline_with = [](const std::string& consumers) {
    return trace_of("05_ws_double_buffer",
                    {"--shape", "512x1024x512", "--no-verify", "--consumers", consumers});
  };
  const Json together = timeline_with("together"), ping_pong = timeline_with("ping-pong");
  constexpr int kProducts0 = 1, kProducts1 = 3;
  CHECK(lane_names(ping_pong).at(kProducts0) == "compute 0: products in flight");
  CHECK(lane_names(ping_pong).at(kProducts1) == "compute 1: products in flight");
  CHECK(overlap_of_lanes(together, kProducts0, kProducts1, "mma") > 0.5);
  CHECK(overlap_of_lanes(ping_pong, kProducts0, kProducts1, "mma") < 0.25);  // at hand-overs
  CHECK(overlap(events_of(ping_pong), "wait pipe_cs[0].empty[0]", "mma") > 0);
  check_lanes(ping_pong);
}

TEST_CASE("05: a timeline can be that of a kernel with an epilogue") {
  CHECK(trace_of("05_ws_double_buffer", {"--size", "256", "--epilogue", "bias_relu"})
            .at("metadata")
            .at("summary")
            .size() > 0);
}

TEST_CASE("A timeline that cannot be written, or of more than one launch, is bad input") {
  CHECK(run("03_double_buffer", {"--size", "128", "--trace", "/nonexistent/t.json"}) ==
        ladder::kExitBadInput);
  const TemporaryDirectory directory;
  const std::string path = directory.file("t.json");
  CHECK(run("03_double_buffer", {"--slots", "1,2", "--trace", path}) == ladder::kExitBadInput);
  CHECK(run("03_double_buffer", {"--size", "128,256", "--trace", path}) == ladder::kExitBadInput);
  CHECK(run("03_double_buffer", {"--schedule", "all", "--trace", path}) == ladder::kExitBadInput);
  CHECK(run("03_double_buffer", {"--json", directory.file("r.json"), "--trace", path}) ==
        ladder::kExitBadInput);
  CHECK(directory.names().empty());
}
