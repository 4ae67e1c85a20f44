/// @file
/// The program `ladder`.
#include "common/ladder/climb.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>

#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/report.hpp"
#include "common/ladder/compare.hpp"
#include "common/ladder/recorded.hpp"

namespace ladder {
namespace {

constexpr int kDefaultGpuSize = 4096;
constexpr int kDefaultCpuSize = 512;

/// The lessons named by number or by name, in the order of the ladder; all if `list` is empty.
std::vector<const Lesson*> choose(const std::vector<const Lesson*>& lessons, const std::string& argument,
                                  const std::string& list) {
  if (list.empty()) return lessons;
  const std::vector<std::string> wanted = split(list, ',');
  std::vector<std::string> known;
  for (const Lesson* lesson : lessons) known.push_back(number_of(lesson->name));
  const auto is = [](const Lesson& lesson, const std::string& word) {
    return lesson.name == word || number_of(lesson.name) == word;
  };
  for (const std::string& word : wanted)
    if (std::none_of(lessons.begin(), lessons.end(), [&](const Lesson* lesson) { return is(*lesson, word); }))
      throw std::invalid_argument(argument + " '" + word + "': no such lesson; there are " +
                                  join(known, ", "));
  std::vector<const Lesson*> chosen;
  for (const Lesson* lesson : lessons)
    if (std::any_of(wanted.begin(), wanted.end(), [&](const std::string& word) { return is(*lesson, word); }))
      chosen.push_back(lesson);
  return chosen;
}

std::vector<Column> columns(const std::vector<Contender>& contenders, const Execution& execution) {
  constexpr int kNumberWidth = 3, kWidestLibrary = 32;
  const int rung_width = kNumberWidth + widest_label(contenders);
  if (on_cpu_device()) {
    const int schedule_width = widest_schedule(execution);
    return {{"rung", rung_width + (schedule_width ? 1 + schedule_width : 0), false},
            {"verified", 8, false},
            {"B/output", 8},
            {"flops/B", 7},
            {"waits", 9},
            {"overlap", 7},
            {"recorded", 8},
            {"% library", 9}};
  }
  return {{"rung", std::max(rung_width, kWidestLibrary), false},
          {"time us", 10},
          {"TFLOP/s", 7},
          {"x last", 6},
          {"% library", 9},
          {"MHz", 5},
          {"verified", 8, false}};
}

/// Makes the rows: a rung's row depends on the one before. Remembers the rungs that were slower than that.
class Rows {
 public:
  Rows(const std::vector<const Lesson*>& lessons, const Recorded& recorded) : recorded_(recorded) {
    for (const Lesson* lesson : lessons) lessons_[lesson->name] = lesson;
  }

  std::vector<std::string> operator()(const Outcome& outcome) {
    return on_cpu_device() ? cpu_row(outcome) : gpu_row(outcome);
  }

  /// A line for each rung that was slower than the one before it, at one shape at least.
  std::vector<std::string> notes() const {
    std::vector<std::string> lines;
    for (const auto& [rung, lesson] : slower_)
      lines.push_back(rung + " is slower than the rung before it: see " + lesson + "/README.md");
    return lines;
  }

 private:
  std::vector<std::string> gpu_row(const Outcome& outcome) {
    const Run& run = outcome.run;
    const bool is_rung = lessons_.count(run.lesson) > 0;
    const std::optional<double> gain = is_rung ? gain_over_last(outcome, run.tflops) : std::nullopt;
    return {title(outcome),
            time_cell(run),
            tflops_cell(run),
            gain ? fixed(*gain, 2) : "-",
            percent_cell(outcome.percent_of_library),
            run.sm_clock_mhz ? fixed(*run.sm_clock_mhz, 0) : "-",
            verified_cell(outcome)};
  }

  std::vector<std::string> cpu_row(const Outcome& outcome) {
    const Run& run = outcome.run;
    const Lesson& lesson = *lessons_.at(run.lesson);
    const std::optional<double> tflops = recorded_.tflops(lesson, run.settings);
    gain_over_last(outcome, tflops);
    return {title(outcome),
            verified_cell(outcome),
            bytes_per_output_cell(run),
            flops_per_byte_cell(run),
            count_cell(run.counters->barrier_waits),
            overlap_cell(run),
            tflops ? fixed(*tflops, 1) : "-",
            percent_cell(recorded_.percent_of_library(lesson, run.settings))};
  }

  /// Nothing for the first rung of a shape, which has none before it.
  std::optional<double> gain_over_last(const Outcome& outcome, std::optional<double> tflops) {
    constexpr double kNoise = 0.005;
    const bool comparable = last_tflops_ && tflops && last_shape_ == outcome.run.shape;
    const std::optional<double> gain = comparable ? std::optional(*tflops / *last_tflops_) : std::nullopt;
    if (gain && *gain < 1 - kNoise) slower_[rung(outcome)] = outcome.run.lesson;
    last_shape_ = outcome.run.shape;
    last_tflops_ = tflops;
    return gain;
  }

  /// "03 two slots", also for what is no rung.
  std::string rung(const Outcome& outcome) const {
    const auto lesson = lessons_.find(outcome.run.lesson);
    const std::string& label = outcome.contender->label;
    return lesson == lessons_.end() ? label : number_of(lesson->second->name) + " " + label;
  }
  std::string title(const Outcome& outcome) const {
    return rung(outcome) + (outcome.schedule.empty() ? "" : " " + outcome.schedule);
  }

  std::map<std::string, const Lesson*> lessons_;
  const Recorded& recorded_;
  Shape last_shape_;
  std::optional<double> last_tflops_;
  std::map<std::string, std::string> slower_;  ///< rungs, and their lessons
};

/// Drops the lessons that the GPU is too old for, and says so.
std::vector<const Lesson*> runnable(const std::vector<const Lesson*>& lessons) {
  std::vector<const Lesson*> result;
  for (const Lesson* lesson : lessons) {
    const std::string reason = why_not_runnable(*lesson);
    if (reason.empty())
      result.push_back(lesson);
    else
      std::cout << "skipped: " << reason << std::endl;
  }
  if (result.empty()) throw BadInput("no lesson can run here");
  return result;
}

/// Every rung of the lessons, each checked to run all shapes.
std::vector<Contender> rungs_of(const std::vector<const Lesson*>& lessons, const std::vector<Shape>& shapes) {
  std::vector<Contender> contenders;
  for (const Lesson* lesson : lessons)
    for (const Rung& rung : lesson->rungs) {
      for (const Shape& shape : shapes) check_lesson(*lesson, rung.settings, shape);
      contenders.push_back(contender_of(*lesson, rung.label, rung.settings));
    }
  return contenders;
}

int run(const std::vector<const Lesson*>& all_lessons, int argc, char** argv) {
  CLI::App app("Climbs the ladder: every lesson, from a naive kernel up, on the same problem", "ladder");
  app.footer("ladder learn: the exercises; see ladder learn --help");
  CommonOptions options;
  std::string lesson_list, lesson_of_files, results_path;
  options.add_to(app);
  app.add_option("--lessons", lesson_list, "Only these, for example 01,03")->type_name("NN[,NN]");
  app.add_option("--lesson", lesson_of_files, "The lesson that multiplies --a and --b (default: the last)")
      ->type_name("NN");
  if (on_cpu_device())
    app.add_option("--results", results_path, "Show the GPU figures recorded in this file")
        ->type_name("PATH");
  CLI::App* const compare = app.add_subcommand("compare", "What changed between two result files");
  std::string before_path, after_path;
  bool compare_all = false;
  compare->add_option("before", before_path, "A result file")->required()->type_name("PATH");
  compare->add_option("after", after_path, "A later one")->required()->type_name("PATH");
  compare->add_flag("--all", compare_all, "Also what did not change beyond the noise");
  if (!parse_arguments(app, argc, argv)) return kExitOk;
  if (compare->parsed()) {
    compare_files(std::cout, before_path, after_path, compare_all);
    return kExitOk;
  }
  options.check();
  const std::vector<const Lesson*> lessons = choose(all_lessons, "--lessons", lesson_list);
  const std::vector<const Lesson*> multiplier = choose(all_lessons, "--lesson", lesson_of_files);
  if (lessons.empty()) throw BadInput("this program was built without lessons");
  if (!lesson_of_files.empty() && (!options.files.given() || multiplier.size() != 1))
    throw std::invalid_argument(
        "--lesson " + lesson_of_files +
        ": must be one lesson, and needs --a, --b and --output; to run some, --lessons");
  require_device();

  if (options.files.given()) {
    use_schedule(options.comparison.execution, options.comparison.execution.schedules.front());
    const Lesson& lesson = *runnable(multiplier).back();
    return multiply_files(lesson, {}, options.files, options.comparison.verify) ? kExitOk : kExitFailure;
  }

  const int size = on_cpu_device() ? kDefaultCpuSize : kDefaultGpuSize;
  if (options.shapes.empty()) options.shapes.push_back({size, size, size});
  const Recorded recorded = results_path.empty() ? Recorded::newest() : Recorded::from_file(results_path);
  const std::vector<Contender> contenders = rungs_of(runnable(lessons), options.shapes);
  Rows rows(lessons, recorded);
  const Report report{"ladder", "C = A B, bf16, summed in fp32",
                      columns(contenders, options.comparison.execution), std::ref(rows), true};
  const int exit_code = report_comparisons(report, contenders, options);
  if (on_cpu_device()) std::cout << "\n" << recorded.description() << "\n";
  for (const std::string& note : rows.notes()) std::cout << note << "\n";
  std::cout.flush();
  return exit_code;
}

}  // namespace

int run_ladder(const std::vector<const Lesson*>& lessons, int argc, char** argv) {
  return run_program("ladder", [&] { return run(lessons, argc, argv); });
}

}  // namespace ladder
