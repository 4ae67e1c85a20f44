/// @file
/// The command line of `predict`, and its tables.
#include "common/model/predict.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/program.hpp"
#include "common/model/calibration.hpp"
#include "common/model/lessons.hpp"
#include "common/model/model.hpp"
#include "common/model/picture.hpp"
#include "common/model/report_file.hpp"

namespace ladder::model {
namespace {

constexpr uint64_t kMaxTiles = 1'000'000, kMaxSlots = 1000;

struct Options {
  double load = 0, compute = 0, store = 0;
  std::optional<double> load_interval;
  std::string tiles = "64", slots = "1,2,3", trace, results = LADDER_RESULTS_DIR, json;
  bool late_release = false, timeline = false, lessons = false;
};

int tiles_of(const Options& options) {
  return static_cast<int>(parse_number("--tiles", options.tiles, 0, kMaxTiles));
}

std::vector<int> slots_of(const Options& options) {
  std::vector<int> result;
  for (const std::string& text : split(options.slots, ','))
    result.push_back(static_cast<int>(parse_number("--slots", text, 1, kMaxSlots)));
  return result;
}

/// A number without trailing zeros.
std::string number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

Pipeline pipeline_of(const Options& options) {
  Pipeline pipeline{options.load, options.compute, options.store};
  pipeline.load_interval = options.load_interval;
  if (options.late_release) pipeline.release = Release::after_next_wait;
  return pipeline;
}

void print_slots(std::ostream& out, const Options& options) {
  const int tiles = tiles_of(options);
  std::vector<std::vector<std::string>> rows;
  double first = 0;
  for (const int slots : slots_of(options)) {
    const Pipeline pipeline = with_slots(pipeline_of(options), slots);
    const double total = total_time(pipeline, tiles);
    if (rows.empty()) first = total;
    const std::optional<double> step = time_per_tile(pipeline);
    const double busy = total > 0 ? tiles * options.compute / total * 100 : 0;
    rows.push_back({std::to_string(slots), number(total), step ? number(*step) : "",
                    fixed(total > 0 ? first / total : 1, 2), fixed(busy, 0) + " %"});
  }
  Table table(out,
              {{"slots", 5}, {"total", 10}, {"each further tile", 17}, {"x first", 7}, {"compute busy", 12}});
  table.header();
  for (const std::vector<std::string>& row : rows) table.row(row);
}

void print_calibration(std::ostream& out, const Calibration& found) {
  out << found.lesson << ", " << found.shape << ", " << found.settings << "\n"
      << found.device << ", " << found.date << ", commit " << found.commit << "; block 0: " << found.tiles
      << " tiles of C, " << found.steps_per_tile << " steps each\n\n";
  const auto line = [&](const char* what, const std::string& value, const char* note) {
    out << what << std::string(12 - std::min<size_t>(11, std::string(what).size()), ' ') << value << note
        << "\n";
  };
  line("slots", std::to_string(found.slots), "");
  line("load", found.load ? fixed(*found.load, 0) : "?",
       found.load ? " ns, from a slot's release until the next tile has landed in it"
                  : ", hidden behind compute; --load says it, or the timeline of 04");
  line("compute", fixed(found.compute, 0), " ns a step");
  line("store", fixed(found.store, 0), " ns a tile of C");
  line("epilogue", fixed(found.epilogue, 0), " ns a tile of C, of compute's own time");
  line("recorded", fixed(found.recorded / 1000, 1), " us, from the first copy until the last step");
}

/// What a timeline's times make of 1 slot, 2 slots, ...
int print_trace(const Options& options) {
  const Calibration found = calibrate("--trace", options.trace);
  print_calibration(std::cout, found);
  const double load = options.load != 0 ? options.load : found.load.value_or(0);
  if (load == 0) return kExitOk;

  std::cout << "\n";
  Table table(std::cout,
              {{"slots", 5}, {"predicted, us", 13}, {"each further step, ns", 21}, {"", 8, false}});
  table.header();
  std::vector<int> slots = slots_of(options);
  if (std::find(slots.begin(), slots.end(), found.slots) == slots.end()) slots.push_back(found.slots);
  const Release release = options.late_release ? Release::after_next_wait : Release::after_compute;
  for (const int count : slots) {
    const Pipeline pipeline = ring_of(count, load, found.compute, release);
    const double total =
        *closed_form(pipeline, found.tiles * found.steps_per_tile) + (found.tiles - 1) * found.epilogue;
    table.row({std::to_string(count), fixed(total / 1000, 1), fixed(*time_per_tile(pipeline), 0),
               count == found.slots ? "recorded" : ""});
  }
  return kExitOk;
}

std::string name_of(const Prediction& prediction) {
  const Run& run = prediction.run;
  std::string name = run.lesson;
  for (const char* key : {"along", "copy", "kernel", "step", "roles", "blocks"})
    if (run.settings.count(key)) name += std::string(", ") + run.settings.at(key);
  return name;
}

void print_predictions(std::ostream& out, const std::vector<Prediction>& predictions) {
  Table table(out, {{"kernel", 31, false},
                    {"size", 5},
                    {"slots", 5},
                    {"predicted, us", 13},
                    {"measured, us", 12},
                    {"error", 6},
                    {"takes the time", 14, false}});
  table.header();
  for (const Prediction& prediction : predictions)
    table.row({name_of(prediction), std::to_string(prediction.run.shape.k),
               prediction.kernel.slots > 0 ? std::to_string(prediction.kernel.slots) : "",
               fixed(prediction.us, 0), fixed(*prediction.run.time_us_median, 0),
               fixed(prediction.error_percent, 0) + " %", prediction.bound});
}

int print_lessons(const Options& options) {
  const Report report = report_on(options.results);
  constexpr double kMicrosecond = 1000;  // in ns
  std::cout << report.climb.gpu << ", " << report.climb.date << ", commit " << report.climb.commit << "\n"
            << "From the parts: a load takes " << fixed(landed_ns(report.parts.load_128, kMicrosecond), 0)
            << " ns for a tile of 128 x 128, " << fixed(landed_ns(report.parts.load_256, kMicrosecond), 0)
            << " of 128 x 256, where one comes every microsecond.\n"
            << "Predicted times are for the clock that each kernel was measured at.\n\n";
  print_predictions(std::cout, report.climb_predictions);
  std::cout << "\n";
  print_predictions(std::cout, report.slot_predictions);
  std::cout << "\n";
  print_predictions(std::cout, report.bound_predictions);
  if (!options.json.empty())
    write_file_atomically("--json", options.json, [&](std::ostream& file) { file << to_json(report); });
  return kExitOk;
}

int run(int argc, char** argv) {
  Arguments arguments(
      "Predicts what a pipeline takes: tiles that are loaded, computed and stored through a ring of slots",
      "predict");
  Options options;
  arguments.add_option("--load", options.load, "TIME", "Time until a tile has landed, in any unit");
  arguments.add_option("--compute", options.compute, "TIME", "Time to compute a tile");
  arguments.add_option("--store", options.store, "TIME", "Time to store a tile (default: 0, two roles)");
  arguments.add_option("--load-interval", options.load_interval, "TIME",
                       "Time from the start of a copy to that of the next (default: that of a load)");
  arguments.add_flag("--late-release", options.late_release,
                     "A slot is released only when the next tile has landed (two slots or more)");
  arguments.add_option("--tiles", options.tiles, "N", "How many tiles (default: 64)");
  arguments.add_option("--slots", options.slots, "N[,N]", "Slots of the rings (default: 1,2,3)");
  arguments.add_flag("--timeline", options.timeline, "Draw what each role does and when");
  arguments.add_option("--trace", options.trace, "PATH",
                       "Take the times from a timeline of lesson 04, 05 or 06");
  arguments.add_flag("--lessons", options.lessons, "Predicted and measured times of all lessons");
  arguments.add_option("--results", options.results, "PATH",
                       "Where results were recorded (default: docs/results)");
  arguments.add_option("--json", options.json, "PATH", "Write what --lessons prints to a file");
  arguments.exclude("--trace", "--lessons");
  arguments.exclude("--trace", "--timeline");
  arguments.exclude("--lessons", "--timeline");
  if (!arguments.parse(argc, argv)) return kExitOk;
  if (!options.json.empty() && !options.lessons)
    throw std::invalid_argument("--json '" + options.json + "': needs --lessons");
  if (options.lessons) return print_lessons(options);
  if (!options.trace.empty()) return print_trace(options);

  if (!arguments.has("--load") || !arguments.has("--compute"))
    throw std::invalid_argument("--load and --compute: both are needed, or --trace, or --lessons");
  if (!options.timeline) {
    print_slots(std::cout, options);
    return kExitOk;
  }
  for (const std::string& line : draw_with_slots(pipeline_of(options), slots_of(options), tiles_of(options)))
    std::cout << line << "\n";
  return kExitOk;
}

}  // namespace

int run_predict(int argc, char** argv) {
  return run_program("predict", [&] { return run(argc, argv); });
}

}  // namespace ladder::model
