/// @file
/// The file of predictions, as JSON.
#include "common/model/report_file.hpp"

#include <cmath>
#include <sstream>
#include <utility>

#include "common/host/base/json.hpp"
#include "common/model/picture.hpp"

namespace ladder::model {
namespace {

/// Figures are rounded a little finer than the pages show them, so that every compiler writes the same file.
double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

Json json_of(const std::vector<Prediction>& predictions) {
  Json list = Json::array();
  for (const Prediction& prediction : predictions) {
    const Run& run = prediction.run;
    const Json clock = run.clock_mhz ? Json(rounded(*run.clock_mhz, 0)) : Json(nullptr);
    list.push_back({{"lesson", run.lesson},
                    {"settings", run.settings},
                    {"m", run.shape.m},
                    {"n", run.shape.n},
                    {"k", run.shape.k},
                    {"slots", prediction.kernel.slots},
                    {"blocks_per_sm", prediction.kernel.blocks_per_sm},
                    {"bound", prediction.bound},
                    {"predicted_us", rounded(prediction.us, 3)},
                    {"measured_us", rounded(*run.time_us_median, 3)},
                    {"clock_mhz", clock},
                    {"error_percent", rounded(prediction.error_percent, 4)}});
  }
  return list;
}

/// The steps that the pipeline bench of the site begins with, by the names of its presets.
Json steps(const Parts& parts) {
  constexpr double kIdle = 1650,
                   kBusy = 1400;  // about the clock of kernels whose tensor cores wait, or do not
  const std::pair<const char*, StepKind> kinds[] = {{"03_one", {Mover::cp_async, 128, 1, 1, kIdle}},
                                                    {"03", {Mover::cp_async, 128, 3, 1, kIdle}},
                                                    {"04", {Mover::role, 128, 1, 1, kIdle}},
                                                    {"05_1", {Mover::role, 128, 4, 1, kBusy}},
                                                    {"05", {Mover::role, 256, 4, 1, kBusy}}};
  Json list = Json::array();
  for (const auto& [name, kind] : kinds) {
    const Pipeline pipeline = pipeline_of(parts, kind, clocks_of_load(parts, kind));
    list.push_back({{"step", name},
                    {"slots", kind.slots},
                    {"load_clocks", rounded(pipeline.load, 0)},
                    {"compute_clocks", rounded(pipeline.compute, 0)},
                    {"late_release", pipeline.release == Release::after_next_wait}});
  }
  return list;
}

/// A picture for the page, with the command that draws it.
Json picture(const Pipeline& pipeline, int tiles) {
  std::ostringstream command;
  command << "build/bin/predict --timeline --load " << pipeline.load << " --compute " << pipeline.compute;
  if (pipeline.store > 0) command << " --store " << pipeline.store;
  command << " --tiles " << tiles << " --slots 1,2";
  return {{"command", command.str()}, {"lines", draw_with_slots(pipeline, {1, 2}, tiles)}};
}

}  // namespace

std::string to_json(const Report& report) {
  Json json = {{"date", report.climb.date}, {"commit", report.climb.commit}, {"gpu", report.climb.gpu}};
  json["steps"] = steps(report.parts);
  json["climb"] = json_of(report.climb_predictions);
  json["slots"] = json_of(report.slot_predictions);
  json["bounds"] = json_of(report.bound_predictions);
  json["pictures"] = {{"two_roles", picture({.load = 2, .compute = 3}, 4)},
                      {"three_roles", picture({.load = 2, .compute = 3, .store = 2}, 4)}};
  return json_rows(json);
}

}  // namespace ladder::model
