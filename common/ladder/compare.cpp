/// @file
/// What changed between two result files.
#include "common/ladder/compare.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"

namespace ladder {
namespace {

bool is_same(const Run& a, const Run& b) {
  const auto agrees = [&](const auto& setting) {
    const auto other = b.settings.find(setting.first);
    return other == b.settings.end() || other->second == setting.second;
  };
  return a.lesson == b.lesson && a.core == b.core && a.shape == b.shape && a.inputs == b.inputs &&
         std::all_of(a.settings.begin(), a.settings.end(), agrees);
}

std::vector<const Run*> timed(const ResultFile& file) {
  std::vector<const Run*> runs;
  for (const Run& run : file.runs)
    if (run.time_us_median && *run.time_us_median > 0) runs.push_back(&run);
  return runs;
}

/// Half the distance of the quartiles, in percent of the median; 0 if they were not recorded.
double spread_percent(const Run& run) {
  if (!run.time_us_q1 || !run.time_us_q3) return 0;
  return (*run.time_us_q3 - *run.time_us_q1) / 2 / *run.time_us_median * 100;
}

Change change_between(const Run& before, const Run& after) {
  const double ratio = *after.time_us_median / *before.time_us_median;
  Change change{&before, &after, (ratio - 1) * 100, std::nullopt,
                spread_percent(before) + spread_percent(after)};
  if (before.clock_mhz && after.clock_mhz && *before.clock_mhz > 0)
    change.cycles_percent = (ratio * *after.clock_mhz / *before.clock_mhz - 1) * 100;
  return change;
}

/// "05_ws_double_buffer, slots=3": with the settings in which the runs of the lesson differ.
std::string name_of(const Run& run, const ResultFile& file) {
  std::string name = run.lesson;
  for (const auto& [knob, value] : run.settings) {
    const auto differs = [&, knob = knob, value = value](const Run& other) {
      const auto setting = other.settings.find(knob);
      return other.lesson == run.lesson && setting != other.settings.end() && setting->second != value;
    };
    if (std::any_of(file.runs.begin(), file.runs.end(), differs)) name += ", " + knob + "=" + value;
  }
  return name;
}

std::string signed_percent(double percent) { return (percent > 0 ? "+" : "") + fixed(percent, 1); }

std::string clock_cell(const Run& run) { return run.clock_mhz ? fixed(*run.clock_mhz, 0) : "-"; }

std::string verdict(const Change& change) {
  if (!change.beyond_noise()) return "";
  return change.time_percent < 0 ? "faster" : "slower";
}

std::string origin(const std::string& path, const ResultFile& file) {
  return path + ": " + file.gpu + ", driver " + file.driver + ", " + file.toolkit + ", " + file.date +
         ", commit " + file.commit;
}

void print_unmatched(std::ostream& out, const std::vector<const Run*>& runs, const std::string& path,
                     const ResultFile& file) {
  for (const Run* run : runs)
    out << "only in " << path << ": " << name_of(*run, file) << ", " << run->shape.name() << "\n";
}

ResultFile read_timed(const std::string& path) {
  ResultFile file = read_results("compare", path);
  if (timed(file).empty())
    throw std::invalid_argument("compare '" + path + "': holds no times; record it on a GPU");
  return file;
}

}  // namespace

Comparison compare_results(const ResultFile& before, const ResultFile& after) {
  Comparison comparison;
  std::vector<const Run*> candidates = timed(before);
  for (const Run* run : timed(after)) {
    const auto same = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const Run* candidate) { return is_same(*candidate, *run); });
    if (same == candidates.end()) {
      comparison.only_after.push_back(run);
      continue;
    }
    comparison.changes.push_back(change_between(**same, *run));
    candidates.erase(same);
  }
  comparison.only_before = candidates;
  return comparison;
}

void compare_files(std::ostream& out, const std::string& before_path, const std::string& after_path,
                   bool all) {
  const ResultFile before = read_timed(before_path), after = read_timed(after_path);
  const Comparison comparison = compare_results(before, after);
  const auto changed = std::count_if(comparison.changes.begin(), comparison.changes.end(),
                                     [](const Change& change) { return change.beyond_noise(); });
  out << origin(before_path, before) << "\n" << origin(after_path, after) << "\n\n";
  if (changed > 0 || (all && !comparison.changes.empty())) {
    Table table(out, {{"us", 9},
                      {"us", 9},
                      {"time %", 7},
                      {"noise %", 7},
                      {"MHz", 5},
                      {"MHz", 5},
                      {"clocks %", 8},
                      {"", 6, false},
                      {"what", 4, false}});
    table.header();
    for (const Change& change : comparison.changes)
      if (all || change.beyond_noise())
        table.row({fixed(*change.before->time_us_median, 1), fixed(*change.after->time_us_median, 1),
                   signed_percent(change.time_percent), fixed(change.noise_percent, 1),
                   clock_cell(*change.before), clock_cell(*change.after),
                   change.cycles_percent ? signed_percent(*change.cycles_percent) : "-", verdict(change),
                   name_of(*change.after, after) + ", " + change.after->shape.name()});
    out << "\n";
  }
  print_unmatched(out, comparison.only_before, before_path, before);
  print_unmatched(out, comparison.only_after, after_path, after);
  out << changed << " of " << comparison.changes.size() << " changed beyond the noise." << std::endl;
}

}  // namespace ladder
