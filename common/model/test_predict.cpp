/// @file
/// What is read from timelines and result files, what `predict` makes of it, and how it refuses.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include "common/host/timeline/timeline.hpp"
#include "common/model/calibration.hpp"
#include "common/model/lessons.hpp"
#include "common/model/picture.hpp"
#include "common/model/predict.hpp"
#include "common/testing/captured_program.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using ladder::Run;
using ladder::SpanKind;
using ladder::Timeline;
using ladder::model::calibrate;
using ladder::model::Calibration;
using ladder::model::kernel_of;
using ladder::model::Parts;
using ladder::model::Prediction;
using ladder::testing::TemporaryDirectory;
using Result = ladder::testing::ProgramResult;

namespace {

constexpr double kHandOver = 30, kCopy = 70, kCompute = 50, kEpilogue = 40, kStore = 25;
constexpr int kTiles = 2, kSteps = 3;

/// Two tiles of C of three steps each, with one slot and two warpgroups, the second of which is later by 5.
Timeline one_slot() {
  Timeline timeline;
  timeline.unit = "ns";
  timeline.tiles[0] = kTiles;
  ladder::TimelineLane loader{0, "loader", "", {}}, first{0, "compute 0", "", {}},
      second{0, "compute 1", "", {}}, storer{0, "storer", "", {}};
  double now = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    for (int step = 0; step < kSteps; ++step) {
      loader.spans.push_back({SpanKind::wait, "wait pipe_lc.empty[0]", now, now + kHandOver});
      loader.spans.push_back({SpanKind::load, "load", now + kHandOver, now + kHandOver + 10});
      const double landed = now + kHandOver + kCopy;
      first.spans.push_back({SpanKind::wait, "wait pipe_lc.full[0]", now, landed});
      first.spans.push_back({SpanKind::compute, "compute", landed, landed + kCompute - 5});
      second.spans.push_back({SpanKind::wait, "wait pipe_lc.full[0]", now, landed + 5});
      second.spans.push_back({SpanKind::compute, "compute", landed + 5, landed + kCompute});
      now = landed + kCompute;
    }
    first.spans.push_back({SpanKind::store, "stage", now, now + 5});
    storer.spans.push_back({SpanKind::store, "store", now + 5, now + 5 + kStore});
    now += kEpilogue - 5;  // the first warpgroup is through 5 earlier
  }
  timeline.lanes = {first, second, loader, storer};
  return timeline;
}

/// One tile of C of four steps with two slots; compute is never drained.
Timeline ring() {
  Timeline timeline;
  timeline.unit = "ns";
  timeline.tiles[0] = 1;
  ladder::TimelineLane loader{0, "loader", "", {}}, compute{0, "compute", "", {}},
      storer{0, "storer", "", {}};
  for (int step = 0; step < 4; ++step) {
    const double now = 100.0 * step;
    loader.spans.push_back(
        {SpanKind::wait, "wait pipe_lc.empty[" + std::to_string(step % 2) + "]", now, now + 10});
    loader.spans.push_back({SpanKind::load, "load", now + 10, now + 20});
    compute.spans.push_back(
        {SpanKind::wait, "wait pipe_lc.full[" + std::to_string(step % 2) + "]", now + 30, now + 40});
    compute.spans.push_back({SpanKind::compute, "compute", now + 40, now + 60});
  }
  compute.spans.push_back({SpanKind::compute, "compute", 400, 420});
  storer.spans.push_back({SpanKind::store, "store", 450, 460});
  timeline.lanes = {compute, loader, storer};
  return timeline;
}

std::string written(const TemporaryDirectory& directory, const Timeline& timeline,
                    ladder::TimelineFacts more = {}) {
  ladder::TimelineFacts facts = {
      {"lesson", "04_warp_specialized"}, {"settings", "step=storer"}, {"shape", "1x1x1"},
      {"device", "NVIDIA H200"},         {"date", "2026-11-21"},      {"commit", "abc"}};
  facts.insert(facts.end(), more.begin(), more.end());
  const std::string path = directory.file("trace.json");
  ladder::testing::write_bytes(path, ladder::to_trace_events(timeline, facts));
  return path;
}

void refuses_trace(const std::string& path, const char* why) {
  CHECK_THROWS_MATCHES(calibrate("--trace", path), std::invalid_argument,
                       MessageMatches(ContainsSubstring("--trace '" + path) && ContainsSubstring(why)));
}

Result run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  return ladder::testing::run_captured(ladder::model::run_predict, std::move(arguments));
}

Run run_of(const std::string& lesson, ladder::Settings settings) {
  Run run;
  run.lesson = lesson;
  run.core = "wgmma";
  run.shape = {4096, 4096, 4096};
  run.settings = std::move(settings);
  run.time_us_median = 100;
  run.clock_mhz = 1000;
  return run;
}

Prediction predict(const Run& run, const Parts& parts) {
  return ladder::model::predict(run, kernel_of(run).value(), parts, "NVIDIA H200");
}

}  // namespace

TEST_CASE("A timeline with one slot says what a load and a step take") {
  const TemporaryDirectory directory;
  const Calibration found = calibrate("--trace", written(directory, one_slot(), {{"clock_mhz", "1500.5"}}));
  CHECK(found.slots == 1);
  CHECK(found.tiles == kTiles);
  CHECK(found.steps_per_tile == kSteps);
  CHECK(found.load.value() == Approx(kHandOver + kCopy));
  CHECK(found.compute == Approx(kCompute));
  CHECK(found.store == Approx(kStore));
  CHECK(found.epilogue == Approx(kEpilogue));
  CHECK(found.clock_mhz.value() == Approx(1500.5));
  CHECK(found.lesson == "04_warp_specialized");
}

TEST_CASE("A timeline with more slots hides the loads, and says what a step takes") {
  const TemporaryDirectory directory;
  const Calibration found = calibrate("--trace", written(directory, ring()));
  CHECK(found.slots == 2);
  CHECK_FALSE(found.load);
  CHECK(found.compute == Approx(100));
  CHECK(found.recorded == Approx(410));
  CHECK_FALSE(found.clock_mhz);
}

TEST_CASE("A timeline without what the model needs is refused by name") {
  const TemporaryDirectory directory;
  refuses_trace(directory.file("missing.json"), "cannot be read");
  ladder::testing::write_bytes(directory.file("text.json"), "text");
  refuses_trace(directory.file("text.json"), "is no timeline");
  ladder::testing::write_bytes(directory.file("other.json"), "{\"runs\": []}");
  refuses_trace(directory.file("other.json"), "is no timeline");

  Timeline of_cpu = one_slot();
  of_cpu.unit = "cycles";
  refuses_trace(written(directory, of_cpu), "CPU device");
  Timeline without_loader = one_slot();
  without_loader.lanes.erase(without_loader.lanes.begin() + 2);
  refuses_trace(written(directory, without_loader), "has no loader");
  Timeline cut = one_slot();
  cut.lanes[1].spans.resize(4);
  refuses_trace(written(directory, cut), "the same number of steps");
  Timeline uneven = one_slot();
  uneven.tiles[0] = 4;
  refuses_trace(written(directory, uneven), "6 loads for 4 tiles");
}

/// Round numbers: a product of 128 x 128 takes 512 clocks, and of 128 x 256 1024.
Parts parts_with_load(double load) {
  Parts parts;
  parts.load_128 = parts.load_256 = parts.async = {{100, load}};  // at any pace
  parts.async_asked = 400;
  parts.store_registers = 1000;
  return parts;
}

TEST_CASE("A kernel's time is that of the steps and tiles of its busiest SM") {
  // 4096 cubed in tiles of 128 x 256: 512, of which an SM gets 4, of 64 steps.
  const Parts slow = parts_with_load(2000);
  const Prediction one = predict(run_of("05_ws_double_buffer", {{"slots", "1"}}), slow);
  CHECK(one.cycles == Approx(4 * 64 * (2000 + 1024)));
  CHECK(one.bound == "load + compute");
  const Prediction two = predict(run_of("05_ws_double_buffer", {{"slots", "2"}}), slow);
  CHECK(two.cycles == Approx(4 * 64 * 1512));
  CHECK(two.bound == "load");
  const Prediction three = predict(run_of("05_ws_double_buffer", {{"slots", "3"}}), slow);
  CHECK(three.cycles == Approx(4 * 64 * 1024));
  CHECK(three.bound == "tensor cores");
  CHECK(three.us == Approx(three.cycles / 1000));
  CHECK(three.error_percent == Approx(three.us - 100));
  // Tiles of 128 x 128: 1024, of which an SM gets 8.
  CHECK(predict(run_of("05_ws_double_buffer", {{"step", "ring"}}), slow).cycles == Approx(8 * 64 * 628));
}

TEST_CASE("Where two blocks share an SM, a tile that is left over has it for itself") {
  const Parts parts = parts_with_load(1000);
  const double alone = 400 + 512, together = alone / 2 + 512. * 512 / (4 * alone);
  Run run = run_of("03_double_buffer", {});
  CHECK(predict(run, parts).cycles == Approx(8 * 64 * together));
  run.shape.m = 132 * 128;  // one tile for each SM
  run.shape.n = 128;
  CHECK(predict(run, parts).cycles == Approx(64 * alone + 1000));
  CHECK(predict(run, parts).bound == "copy, then compute");
  run.shape.n = 3 * 128;
  CHECK(predict(run, parts).cycles == Approx(2 * 64 * together + 64 * alone + 1000));
}

TEST_CASE("Slots of lesson 03 that leave no room for a second block cost one") {
  CHECK(kernel_of(run_of("03_double_buffer", {{"slots", "3"}}))->blocks_per_sm == 2);
  CHECK(kernel_of(run_of("03_double_buffer", {{"slots", "4"}}))->blocks_per_sm == 1);
}

TEST_CASE("Lesson 01 is bound by its load units, lesson 07 by its busiest engine") {
  using ladder::model::predict_bound;
  // 4096 cubed: 524288 warps of 4096 steps, over 132 SMs; two lines a step, or 33.
  const auto columns = predict_bound(run_of("01_naive", {{"along", "columns"}}), "NVIDIA H200");
  REQUIRE(columns);
  CHECK(columns->us == Approx(524288.0 * 4096 * 2 / 132 / 1000));
  const auto rows = predict_bound(run_of("01_naive", {{"along", "rows"}}), "NVIDIA H200");
  CHECK(rows->us / columns->us == Approx(16.5));

  Run levels = run_of("07_streams", {{"experiment", "levels"}, {"level", "1"}, {"bound_by", "upload"}});
  levels.bound_us = 80;
  CHECK(predict_bound(levels, "NVIDIA H200")->error_percent == Approx(-20));
  CHECK(predict_bound(levels, "NVIDIA H200")->bound == "upload");
  levels.settings["level"] = "0";
  CHECK_FALSE(predict_bound(levels, "NVIDIA H200"));
  CHECK_FALSE(predict_bound(run_of("02_tiled", {}), "NVIDIA H200"));
}

TEST_CASE("A run that names no setting is of the lesson as it is") {
  CHECK(kernel_of(run_of("03_double_buffer", {}))->slots == 3);
  CHECK(kernel_of(run_of("04_warp_specialized", {}))->mover == ladder::model::Mover::role);
  CHECK(kernel_of(run_of("05_ws_double_buffer", {}))->slots == 4);
  CHECK(kernel_of(run_of("05_ws_double_buffer", {}))->tile_n == 256);
}

TEST_CASE("Runs that the model does not cover have no kernel") {
  Run run = run_of("02_tiled", {});
  run.core = "fma";
  CHECK_FALSE(kernel_of(run));
  CHECK_FALSE(kernel_of(run_of("01_naive", {})));
  CHECK_FALSE(kernel_of(run_of("03_double_buffer", {{"copy", "cg"}})));
  CHECK_FALSE(kernel_of(run_of("05_ws_double_buffer", {{"ratio", "1:3"}})));
  CHECK_FALSE(kernel_of(run_of("05_ws_double_buffer", {{"in_flight", "1"}})));
  CHECK_FALSE(kernel_of(run_of("06_any_shape", {})));
  CHECK_FALSE(kernel_of(run_of("06_clusters_dsmem", {{"clusters", "always"}})));
  run = run_of("05_cube", {{"roles", "off"}, {"blocks", "2"}});
  CHECK(kernel_of(run)->mover == ladder::model::Mover::thread_behind);
  CHECK_THROWS_AS(ladder::model::predict(run, *kernel_of(run), {}, "NVIDIA T4"), std::invalid_argument);
  CHECK_THROWS_MATCHES(kernel_of(run_of("05_ws_double_buffer", {{"slots", "many"}})), std::invalid_argument,
                       MessageMatches(ContainsSubstring("05_ws_double_buffer, slots")));
}

TEST_CASE("A picture has a line for each role, in one scale") {
  CHECK(ladder::model::draw_with_slots({.load = 20, .compute = 30}, {1, 2}, 2) ==
        std::vector<std::string>{
            "1 slot, 100",
            "load     " + std::string(16, '0') + std::string(24, '.') + std::string(16, '1') +
                std::string(24, '.'),
            "compute  " + std::string(16, '.') + std::string(24, '0') + std::string(16, '.') +
                std::string(24, '1'),
            "2 slots, 80", "load     " + std::string(16, '0') + std::string(16, '1') + std::string(32, '.'),
            "compute  " + std::string(16, '.') + std::string(24, '0') + std::string(24, '1')});
  const auto three_roles = ladder::model::draw({{{0, 1}, {1, 2}, {2, 3}}}, 1);
  CHECK(three_roles == std::vector<std::string>{"load     0..", "compute  .0.", "store    ..0"});
  CHECK(ladder::model::draw({}, 1).front() == "load     ");
}

TEST_CASE("predict prints a row for each number of slots") {
  const Result result =
      run({"--load", "300", "--compute", "450", "--store", "200", "--tiles", "64", "--slots", "1,2"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("1       48200") && ContainsSubstring("2       29300"));
}

TEST_CASE("predict reads a timeline and says which row was recorded") {
  const TemporaryDirectory directory;
  const Result result = run({"--trace", written(directory, one_slot()), "--slots", "2"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("100 ns, from a slot's release") && ContainsSubstring("recorded"));
  const std::string hidden = written(directory, ring());
  CHECK_THAT(run({"--trace", hidden}).out,
             ContainsSubstring("hidden behind compute") && !ContainsSubstring("recorded\n"));
  CHECK_THAT(run({"--trace", hidden, "--load", "200", "--slots", "2"}).out,
             ContainsSubstring("2            0.7                    150  recorded"));
  CHECK_THAT(run({"--trace", hidden, "--load", "200", "--late-release", "--slots", "2"}).out,
             ContainsSubstring("2            0.8                    200  recorded"));
}

TEST_CASE("predict writes what the pages are made from") {
  const TemporaryDirectory directory;
  const Result result = run({"--lessons", "--json", directory.file("model.json")});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("05_ws_double_buffer"));
  CHECK_THAT(ladder::testing::read_bytes(directory.file("model.json")), ContainsSubstring("\"pictures\""));
}

TEST_CASE("predict names the argument that is wrong") {
  const TemporaryDirectory directory;
  const auto refuses = [](const std::vector<std::string>& arguments, const char* name) {
    const Result result = run(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring(name));
  };
  refuses({}, "--load and --compute");
  refuses({"--load", "1"}, "--load and --compute");
  refuses({"--load", "-1", "--compute", "2"}, "load: -1");
  refuses({"--load", "nan", "--compute", "2"}, "load: nan");
  refuses({"--load", "1", "--compute", "2", "--slots", "0"}, "--slots");
  refuses({"--load", "1", "--compute", "2", "--tiles", "-3"}, "--tiles");
  refuses({"--load", "1", "--compute", "2", "--json", "x.json"}, "--json");
  refuses({"--lessons", "--timeline"}, "--timeline");
  refuses({"--lessons", "--results", directory.file("")}, "--results");
  refuses({"--trace", directory.file("none.json")}, "--trace");
}
