/// @file
/// The host's half of the climb, as tables.
#include "common/ladder/host_half.hpp"

#include <fmt/core.h>

#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/ladder/recorded.hpp"

namespace ladder {
namespace {

constexpr char kUnknown[] = "-";

/// Speed, gain over the level before, and how near the bound: of what was measured here, or recorded.
std::vector<std::string> figures(const Run* run, const Run* before) {
  if (!run || !run->tflops || !run->time_us_median) return {kUnknown, kUnknown, kUnknown, kUnknown};
  const auto bound_by = run->settings.find("bound_by");
  return {fixed(*run->tflops, 1),
          before && before->tflops ? fixed(*run->tflops / *before->tflops, 2) : kUnknown,
          run->bound_us ? fixed(*run->bound_us / *run->time_us_median * 100, 1) : kUnknown,
          bound_by == run->settings.end() ? kUnknown : bound_by->second};
}

constexpr int kLevelWidth = 41;
const std::vector<Column> kFigures = {
    {"TFLOP/s", 7}, {"gain", 5}, {"% of bound", 10}, {"bound by", 8, false}};

/// What ran here: on a GPU with its speed.
void print_levels(std::ostream& out, const HostHalf& half, const std::vector<Run>& runs) {
  std::vector<Column> columns = {{"level", kLevelWidth, false}, {"verified", 8, false}};
  if (!on_cpu_device()) {
    columns.push_back({"ms", 9});
    columns.insert(columns.end(), kFigures.begin(), kFigures.end());
  }
  Table table(out, columns);
  table.header();
  const std::vector<std::string> levels = half.levels();
  for (size_t i = 0; i < levels.size(); ++i) {
    std::vector<std::string> cells = {levels[i], "yes"};  // else run() would have thrown
    if (!on_cpu_device()) {
      cells.push_back(fixed(*runs[i].time_us_median / 1e3, 3));
      for (const std::string& cell : figures(&runs[i], i > 0 ? &runs[i - 1] : nullptr)) cells.push_back(cell);
    }
    table.row(cells);
  }
}

/// What a GPU did at these levels, at a size of its own.
void print_recorded(std::ostream& out, const HostHalf& half, const std::vector<Run>& runs) {
  const RecordedLevels recorded = RecordedLevels::newest();
  out << "\n" << recorded.description << "\n";
  if (recorded.runs.empty()) return;
  std::vector<Column> columns = {{"level", kLevelWidth, false}};
  columns.insert(columns.end(), kFigures.begin(), kFigures.end());
  Table table(out, columns);
  table.header();
  const std::vector<std::string> levels = half.levels();
  const Run* before = nullptr;
  for (size_t i = 0; i < levels.size(); ++i) {
    const auto same = recorded.runs.find(runs[i].settings.at("level"));
    const Run* run = same == recorded.runs.end() ? nullptr : &same->second;
    std::vector<std::string> cells = {levels[i]};
    for (const std::string& cell : figures(run, before)) cells.push_back(cell);
    table.row(cells);
    before = run;
  }
}

}  // namespace

std::vector<Shape> shapes_in_minutes(const HostHalf& half, const std::string& core) {
  if (core != "fma" || half.shapes.empty()) return half.shapes;
  return {half.shapes.front()};
}

void run_host_half(std::ostream& out, const HostHalf& half, const Execution& execution, int rounds,
                   ResultFile& results) {
  const std::vector<Shape> shapes = shapes_in_minutes(half, resolve_core("auto"));
  std::vector<Run> ran;
  for (const std::string& schedule : execution.schedules)
    for (const Shape& shape : shapes) {
      use_schedule(execution, schedule);
      out << fmt::format("\nFrom host memory to host memory ({}): batches of {} rows, weights {} x {}{}",
                         number_of(half.lesson), shape.m, shape.k, shape.n,
                         schedule.empty() ? "" : ", " + schedule)
          << std::endl;
      const std::vector<Run> runs = half.run(shape, rounds);
      print_levels(out, half, runs);
      ran = runs;
      results.runs.insert(results.runs.end(), runs.begin(), runs.end());
    }
  for (size_t i = shapes.size(); i < half.shapes.size(); ++i)
    out << fmt::format("\nLeft out, since CUDA cores take long: {} --shape {}\n", half.lesson,
                       half.shapes[i].name());
  if (on_cpu_device() && !ran.empty()) print_recorded(out, half, ran);
}

}  // namespace ladder
