/// @file
/// What the model predicts for the recorded runs, beside what the page says of it. This needs no GPU, and the
/// run of all tests that is recorded on one leaves it out.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/results.hpp"
#include "common/model/predict.hpp"
#include "common/model/report_file.hpp"
#include "common/testing/temporary_directory.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::model::Prediction;

TEST_CASE("The recorded predictions are those of the recorded results") {
  const std::string results = LADDER_RESULTS_DIR;
  const auto newest = ladder::newest_result_file(results);
  REQUIRE(newest);
  const std::string path = results + "/model/" + std::filesystem::path(*newest).filename().string();
  INFO("bring " << path << " up to date: common/results/record.py build model");
  ladder::Json recorded = ladder::parse_json(ladder::testing::read_bytes(path));
  for (const char* added : {"record", "fingerprint", "seconds"}) recorded.erase(added);  // by that command
  CHECK(recorded == ladder::parse_json(to_json(ladder::model::report_on(results))));
}

TEST_CASE("The error of every lesson is as small as the page says") {
  // The same numbers stand in docs/cost_model.md, in the sentence that this looks for.
  const std::map<std::string, double> largest = {{"01_naive", 50},          {"02_tiled", 20},
                                                 {"03_double_buffer", 10},  {"04_warp_specialized", 10},
                                                 {"05_cube", 10},           {"05_ws_double_buffer", 10},
                                                 {"06_clusters_dsmem", 10}, {"07_streams", 12}};
  const ladder::model::Report report = ladder::model::report_on(LADDER_RESULTS_DIR);
  std::map<std::string, double> found;
  for (const auto* predictions :
       {&report.climb_predictions, &report.slot_predictions, &report.bound_predictions})
    for (const Prediction& prediction : *predictions) {
      double& worst = found[prediction.run.lesson];
      worst = std::max(worst, std::abs(prediction.error_percent));
    }
  CHECK(found.size() == largest.size());
  std::string sentence;
  for (const auto& [lesson, most] : largest) {
    CAPTURE(lesson, found[lesson]);
    REQUIRE(found.count(lesson) == 1);
    CHECK(found[lesson] < most);
    const std::string name = lesson == "05_cube" ? "the cube of 05" : lesson.substr(0, 2);
    sentence += std::string(sentence.empty() ? "" : ", ") + ladder::fixed(most, 0) + " % in " + name;
  }
  std::string page = ladder::testing::read_bytes(LADDER_RESULTS_DIR "/../cost_model.md");
  std::replace(page.begin(), page.end(), '\n', ' ');
  CHECK_THAT(page, ContainsSubstring("at most " + sentence + "."));
}

TEST_CASE("The model orders the slots of lesson 05, and tells two from more") {
  std::map<int, double> predicted, measured;  // cycles at 4096 cubed, by slots
  for (const Prediction& prediction : ladder::model::report_on(LADDER_RESULTS_DIR).slot_predictions) {
    if (prediction.run.lesson != "05_ws_double_buffer" || prediction.run.shape.m != 4096) continue;
    predicted[prediction.kernel.slots] = prediction.cycles;
    measured[prediction.kernel.slots] = *prediction.run.time_us_median * *prediction.run.clock_mhz;
  }
  constexpr double kMuchSlower = 1.1;
  for (const auto* cycles : {&predicted, &measured}) {
    CHECK(cycles->at(1) > kMuchSlower * cycles->at(2));
    for (const int more : {3, 4}) CHECK(cycles->at(2) > kMuchSlower * cycles->at(more));
  }
}
