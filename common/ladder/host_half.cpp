/// @file
/// The host's half of the climb, as tables.
#include "common/ladder/host_half.hpp"

#include <fmt/core.h>
#include <optional>

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

void print_levels(std::ostream& out, const HostHalf& half, const std::vector<const Run*>& shown) {
  constexpr int kLevelWidth = 30;
  const bool cpu = on_cpu_device();
  std::vector<Column> columns = {{"level", kLevelWidth, false}, {"verified", 8, false}};
  if (!cpu) columns.push_back({"ms", 9});
  columns.insert(
      columns.end(),
      {{cpu ? "recorded" : "TFLOP/s", 8}, {"gain", 5}, {"% of bound", 10}, {"bound by", 8, false}});
  Table table(out, columns);
  table.header();
  const std::vector<std::string> levels = half.levels();
  for (size_t i = 0; i < levels.size(); ++i) {
    std::vector<std::string> cells = {levels[i], "yes"};  // else run() would have thrown
    if (!cpu) cells.push_back(shown[i] ? fixed(*shown[i]->time_us_median / 1e3, 3) : kUnknown);
    for (const std::string& cell : figures(shown[i], i > 0 ? shown[i - 1] : nullptr)) cells.push_back(cell);
    table.row(cells);
  }
}

}  // namespace

void run_host_half(std::ostream& out, const HostHalf& half, const Execution& execution, int rounds,
                   ResultFile& results) {
  const RecordedLevels recorded = on_cpu_device() ? RecordedLevels::newest() : RecordedLevels{};
  for (const std::string& schedule : execution.schedules)
    for (const Shape& shape : half.shapes) {
      use_schedule(execution, schedule);
      out << fmt::format("\nFrom host memory to host memory ({}): batches of {} rows, weights {} x {}{}",
                         number_of(half.lesson), shape.m, shape.k, shape.n,
                         schedule.empty() ? "" : ", " + schedule)
          << std::endl;
      const std::vector<Run> runs = half.run(shape, rounds);
      std::vector<const Run*> shown;
      for (const Run& run : runs) {
        const auto same = recorded.runs.find(run.settings.at("level"));
        if (on_cpu_device())
          shown.push_back(same == recorded.runs.end() ? nullptr : &same->second);
        else
          shown.push_back(&run);
      }
      print_levels(out, half, shown);
      results.runs.insert(results.runs.end(), runs.begin(), runs.end());
    }
  if (on_cpu_device()) out << "\n" << recorded.description << "\n";
}

}  // namespace ladder
