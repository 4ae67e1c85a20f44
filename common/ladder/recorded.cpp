/// @file
/// Figures that were measured on a GPU before.
#include "common/ladder/recorded.hpp"

#include <fmt/core.h>
#include <map>
#include <stdexcept>

namespace ladder {

Recorded Recorded::newest() {
  const std::optional<std::string> path = newest_result_file(LADDER_RESULTS_DIR);
  if (path) return from_file(*path);
  Recorded none;
  none.missing_ = "No recorded GPU figures: there is no result file in docs/results.";
  return none;
}

Recorded Recorded::from_file(const std::string& path) {
  Recorded recorded;
  recorded.file_ = read_results("--results", path);
  recorded.choose_shape();
  return recorded;
}

void Recorded::choose_shape() {
  std::map<int, int> runs_of_size;
  for (const Run& run : file_->runs)
    if (run.shape.m == run.shape.n && run.shape.n == run.shape.k && run.tflops) ++runs_of_size[run.shape.m];
  int most = 0;
  for (const auto& [size, runs] : runs_of_size) {
    if (runs < most) continue;
    most = runs;
    shape_ = {size, size, size};
  }
}

std::string Recorded::description() const {
  if (!file_) return missing_;
  return "Measured on an " + file_->gpu + ", " + file_->date + ", at " + shape_.name() + " (M x N x K):";
}

const Run* Recorded::find(const Lesson& lesson, const Settings& settings) const {
  if (!file_) return nullptr;
  const Settings wanted = lesson.settings(settings);
  for (const Run& run : file_->runs) {
    if (run.lesson != lesson.name || run.shape != shape_ || !run.tflops) continue;
    try {
      // A knob that came after the recording had what is now its default.
      if (lesson.settings(run.settings) == wanted) return &run;
    } catch (const std::invalid_argument&) {
      // Recorded with a knob or a choice that the lesson no longer has.
    }
  }
  return nullptr;
}

std::optional<double> Recorded::tflops(const Lesson& lesson, const Settings& settings) const {
  const Run* run = find(lesson, settings);
  return run ? run->tflops : std::nullopt;
}

std::optional<double> Recorded::percent_of_library(const Lesson& lesson, const Settings& settings) const {
  const Run* run = find(lesson, settings);
  const Run* library = run ? fastest_library(file_->runs, shape_) : nullptr;
  if (!library) return std::nullopt;
  return *run->tflops / *library->tflops * 100;
}

RecordedLevels RecordedLevels::newest() {
  RecordedLevels levels;
  const auto path = newest_result_file(LADDER_RESULTS_DIR "/experiments", "-levels.json");
  if (!path) {
    levels.description = "No recorded levels: there is no such file in docs/results/experiments.";
    return levels;
  }
  const ResultFile file = read_results("--results", *path);
  for (const Run& run : file.runs) levels.runs[run.settings.at("level")] = run;
  const Shape& shape = file.runs.back().shape;
  levels.description = fmt::format("Measured on an {}, {}, batches of {} rows, weights {} x {}:", file.gpu,
                                   file.date, shape.m, shape.k, shape.n);
  return levels;
}

}  // namespace ladder
