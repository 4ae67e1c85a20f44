/// @file
/// Timelines: how spans of warps become lanes of roles, a file and figures.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "common/host/base/json.hpp"
#include "common/host/timeline/timeline.hpp"

using ladder::SpanKind;
using ladder::Timeline;
using ladder::TimelineLane;
using ladder::WarpSpans;

namespace {

WarpSpans warp_with(unsigned warp, std::vector<ladder::TimelineSpan> threads) {
  WarpSpans spans;
  spans.warp = warp;
  spans.threads = std::move(threads);
  return spans;
}

/// A loader and two compute warpgroups, as lesson 04 has them, over 100 ns and two tiles.
Timeline made_up() {
  Timeline timeline;
  timeline.unit = "ns";
  timeline.lanes = ladder::lanes_of_roles(
      {warp_with(8, {{SpanKind::wait, "wait pipe_lc.empty[0]", 0, 60}, {SpanKind::load, "load", 60, 70}}),
       warp_with(0,
                 {{SpanKind::wait, "wait pipe_lc.full[0]", 0, 20}, {SpanKind::compute, "compute", 20, 100}}),
       warp_with(1, {{SpanKind::compute, "compute", 21, 99}}),
       warp_with(4, {{SpanKind::compute, "compute", 30, 90}}),
       warp_with(9, {{SpanKind::wait, "wait pipe_cs.full[0]", 0, 80}, {SpanKind::store, "store", 80, 90}}),
       warp_with(10, {{SpanKind::wait, "wait __syncthreads", 0, 1}}), warp_with(11, {})});
  timeline.tiles[0] = 2;
  return timeline;
}

std::vector<std::string> names(const std::vector<TimelineLane>& lanes) {
  std::vector<std::string> result;
  for (const TimelineLane& lane : lanes) result.push_back(lane.name());
  return result;
}

}  // namespace

TEST_CASE(
    "Roles are named after what they do, and a warpgroup that computes is one, and idle warps have none") {
  CHECK(names(made_up().lanes) == std::vector<std::string>{"compute 0", "compute 1", "loader", "storer"});
}

TEST_CASE("Warps that copy and compute are one role, with lanes for what runs in the background") {
  WarpSpans first = warp_with(0, {{SpanKind::wait, "wait", 0, 1}}), second = warp_with(1, {});
  first.copies = {{SpanKind::load, "copy", 0, 5}};
  second.copies = {{SpanKind::load, "copy", 4, 9}, {SpanKind::load, "copy", 20, 21}};
  first.products = {{SpanKind::compute, "mma", 10, 30}};
  const auto lanes = ladder::lanes_of_roles({first, second});
  CHECK(names(lanes) == std::vector<std::string>{"warpgroup", "warpgroup: copies in flight",
                                                 "warpgroup: products in flight"});
  REQUIRE(lanes[1].spans.size() == 2);
  CHECK(lanes[1].spans[0].end == 9);
}

TEST_CASE("Spans of a lane are cut where they overlap") {
  const auto lanes = ladder::lanes_of_roles({warp_with(
      0, {{SpanKind::load, "b", 5, 20}, {SpanKind::wait, "a", 0, 10}, {SpanKind::wait, "c", 12, 15}})});
  REQUIRE(lanes.at(0).spans.size() == 2);
  CHECK(lanes[0].spans[0].name == "a");
  CHECK(lanes[0].spans[1].begin == 10);
  CHECK(lanes[0].spans[1].end == 20);
}

TEST_CASE("The summary divides each role's time by the tiles of its block") {
  const auto roles = ladder::summarise(made_up());
  REQUIRE(roles.size() == 4);
  const auto& loader = roles[2];
  CHECK(loader.role == "loader");
  CHECK(loader.per_tile == std::array<double, 4>{30, 5, 0, 0});
  CHECK(loader.other_per_tile == Catch::Approx(15));
  CHECK(loader.waited_percent == Catch::Approx(60));
  CHECK(roles[0].per_tile[static_cast<size_t>(SpanKind::compute)] == 40);
}

TEST_CASE("Only the first blocks are kept, with all of their lanes and tiles") {
  WarpSpans second = warp_with(8, {{SpanKind::load, "load", 0, 1}});
  second.block = 3;
  Timeline timeline = made_up();
  timeline.lanes.push_back(ladder::lanes_of_roles({second}).at(0));
  timeline.tiles[3] = 5;
  ladder::keep_blocks(timeline, 7);
  CHECK(timeline.lanes.size() == 5);
  ladder::keep_blocks(timeline, 1);
  CHECK(names(timeline.lanes) == names(made_up().lanes));
  CHECK(timeline.tiles == made_up().tiles);
}

TEST_CASE("Times in the file are rounded to a tenth of a nanosecond") {
  Timeline timeline;
  timeline.lanes = ladder::lanes_of_roles({warp_with(8, {{SpanKind::load, "load", 1.0 / 3, 2001.0 / 3}})});
  const std::string text = ladder::to_trace_events(timeline, {});
  CHECK(text.find("\"ts\":0.0003,\"dur\":0.6667}") != std::string::npos);
}

TEST_CASE("The file holds complete events in microseconds, names of lanes, and the summary") {
  const auto json = ladder::parse_json(ladder::to_trace_events(made_up(), {{"lesson", "99_fake"}}));
  int complete = 0, thread_names = 0;
  for (const auto& event : json.at("traceEvents")) {
    thread_names += event.at("name") == "thread_name";
    if (event.at("ph") != "X") continue;
    ++complete;
    CHECK(event.at("dur").get<double>() > 0);
    if (event.at("name") == "load") {
      CHECK(event.at("ts") == 0.06);
      CHECK(event.at("dur") == 0.01);
      CHECK(event.at("cat") == "load");
    }
  }
  CHECK(complete == 7);
  CHECK(thread_names == 4);
  CHECK(json.at("metadata").at("lesson") == "99_fake");
  CHECK(json.at("metadata").at("unit") == "ns");
  CHECK(json.at("metadata").at("summary").size() == 4);
  CHECK(json.at("metadata").at("summary").at(2).at("per_tile").at("wait") == 30);
}

TEST_CASE("The table has a row for each role, within 100 characters") {
  std::ostringstream out;
  ladder::print_summary(out, made_up());
  std::istringstream lines(out.str());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(line.size() <= 100);
  CHECK(count >= 2 + 4);
}
