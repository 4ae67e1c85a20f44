/// @file
/// The program `ladder`.
#include "common/ladder/commands.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>

#include "common/host/base/arguments.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/tuned_plans.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/report.hpp"
#include "common/ladder/compare.hpp"
#include "common/ladder/lattice.hpp"
#include "common/ladder/recorded.hpp"

namespace ladder {
namespace {

constexpr Shape kDefaultGpuShape{4096, 4096, 4096};
constexpr Shape kDefaultCpuShape{256, 512, 512};
constexpr int kMaxHostRounds = 5;  ///< a round of the host's half takes seconds

/// The lessons named by number or by name, in the order of the ladder; all if `list` is empty.
std::vector<const Lesson*> choose(const std::vector<const Lesson*>& lessons, const std::string& argument,
                                  const std::string& list) {
  if (list.empty()) return lessons;
  const std::vector<std::string> wanted = split(list, ',');
  std::vector<std::string> known;
  for (const Lesson* lesson : lessons)
    if (known.empty() || known.back() != number_of(lesson->name)) known.push_back(number_of(lesson->name));
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

const Column kGain{"gain", 5}, kOver{"over", 6, false}, kLibrary{"% library", 9};

/// The width of the column with the rungs' names.
int width_of_rungs(const std::vector<Contender>& contenders) {
  constexpr int kIdWidth = 5;
  return kIdWidth + widest_label(contenders);
}

std::vector<Column> columns(const std::vector<Contender>& contenders, const Execution& execution) {
  constexpr int kWidestLibrary = 32;
  const int rung_width = width_of_rungs(contenders);
  if (!on_cpu_device())
    return {{"step", std::max(rung_width, kWidestLibrary), false},
            {"time us", 9},
            {"TFLOP/s", 7},
            kGain,
            kOver,
            kLibrary,
            {"MHz", 5},
            {"verified", 8, false}};
  const int schedule_width = widest_schedule(execution);
  return {{"step", rung_width + (schedule_width ? 1 + schedule_width : 0), false},
          {"verified", 8, false},
          {"B/output", 8},
          {"overlap", 7}};
}

const Settings& settings_of(const RungPlace& place) { return place.lesson->rungs[place.rung].settings; }

/// Makes the rows, and remembers the speed of each rung for those that build on it.
class Rows {
 public:
  explicit Rows(const std::vector<const Lesson*>& lessons) : gains_(lessons, resolve_core("auto")) {}

  std::vector<std::string> operator()(const Outcome& outcome) {
    return on_cpu_device() ? cpu_row(outcome) : gpu_row(outcome);
  }

  Gains& gains() { return gains_; }

 private:
  std::vector<std::string> gpu_row(const Outcome& outcome) {
    const Run& run = outcome.run;
    const auto rung = gains_.lattice().find(run.lesson, run.settings);
    if (rung && run.tflops) gains_.add(run.shape, *rung, *run.tflops);
    return {title(outcome, rung),
            time_cell(run),
            tflops_cell(run),
            rung ? gains_.gain_cell(run.shape, *rung) : "",
            rung ? gains_.base_cell(*rung) : "",
            percent_cell(outcome.percent_of_library),
            run.clock_mhz ? fixed(*run.clock_mhz, 0) : "-",
            verified_cell(outcome)};
  }

  std::vector<std::string> cpu_row(const Outcome& outcome) {
    const Run& run = outcome.run;
    return {title(outcome, gains_.lattice().find(run.lesson, run.settings)), verified_cell(outcome),
            bytes_per_output_cell(run), overlap_cell(run)};
  }

  /// "03 two slots", also for what is no rung.
  std::string title(const Outcome& outcome, const std::optional<RungPlace>& rung) const {
    return (rung ? rung->name() : outcome.contender->label) +
           (outcome.schedule.empty() ? "" : " " + outcome.schedule);
  }

  Gains gains_;
};

/// Prints what a GPU reached with the rungs that were measured, at the problem size of that recording.
void print_recorded(const Recorded& recorded, const std::vector<const Lesson*>& lessons, int rung_width,
                    Gains& gains) {
  std::vector<RungPlace> places;
  for (const RungPlace& place : Lattice(lessons, resolve_core("auto")).rungs())
    if (const auto tflops = recorded.tflops(*place.lesson, settings_of(place))) {
      gains.add(recorded.shape(), place, *tflops);
      places.push_back(place);
    }
  if (!recorded.is_missing() && places.empty()) return;
  std::cout << "\n" << recorded.description() << "\n";
  if (places.empty()) return;
  Table table(std::cout, {{"step", rung_width, false}, {"TFLOP/s", 7}, kGain, kOver, kLibrary});
  table.header();
  for (const RungPlace& place : places)
    table.row({place.name(), fixed(*gains.tflops(recorded.shape(), place), 1),
               gains.gain_cell(recorded.shape(), place), gains.base_cell(place),
               percent_cell(recorded.percent_of_library(*place.lesson, settings_of(place)))});
}

/// Drops the lessons that do not run here, and says so.
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

/// The host's half if it is among the chosen lessons; else nullptr.
const HostHalf* chosen_half(const HostHalf* half, const std::vector<const Lesson*>& chosen) {
  const auto is_half = [&](const Lesson* lesson) { return half && lesson->name == half->lesson; };
  return std::any_of(chosen.begin(), chosen.end(), is_half) ? half : nullptr;
}

/// What is said below the tables: speeds along the lattice, and where a rung is no gain.
void print_gains(const Gains& gains) {
  for (const std::vector<std::string>& lines : {gains.causes(), gains.path(), gains.notes()})
    if (!lines.empty()) std::cout << "\n" << join(lines, "\n") << "\n";
}

/// Every rung of the lessons that runs here, each checked to run all shapes.
std::vector<Contender> rungs_of(const std::vector<const Lesson*>& lessons, const std::vector<Shape>& shapes) {
  std::vector<Contender> contenders;
  for (const RungPlace& place : Lattice(lessons, resolve_core("auto")).rungs()) {
    const Rung& rung = place.lesson->rungs[place.rung];
    for (const Shape& shape : shapes) check_lesson(*place.lesson, rung.settings, shape);
    contenders.push_back(contender_of(*place.lesson, rung.label, rung.settings));
    contenders.back().rung = place.id();
  }
  return contenders;
}

/// For those who have just run the first command of the README.
void print_what_next(std::ostream& out) {
  out << "\nWhat was run: all kernels of the lessons, from the simplest to the fastest, on the same "
         "matrices.\n"
      << (on_cpu_device()
              ? "There is no GPU here, so the CPU device ran the kernels. 'verified yes': C is right.\n"
                "Nothing was timed here: TFLOP/s, and gains over the kernel in 'over', are of the run named "
                "above.\n"
              : "'verified yes': C is right.\n"
                "TFLOP/s, and gains over the kernel in 'over', were measured here.\n")
      << "Next: read 01_naive/README.md, the page of the first lesson.\n"
      << "Then: build/bin/ladder learn next shows the first exercise.\n";
}

/// Runs all rungs of the lessons, then the host's half.
/// @param results_path a result file, whose figures are shown on the CPU device; empty: the newest record
/// @param is_whole whether all lessons were asked for
int climb(const std::vector<const Lesson*>& lessons, const HostHalf* half, CommonOptions& options,
          const std::string& results_path, bool is_whole) {
  if (options.shapes.empty()) options.shapes.push_back(on_cpu_device() ? kDefaultCpuShape : kDefaultGpuShape);
  const Recorded recorded = results_path.empty() ? Recorded::newest() : Recorded::from_file(results_path);
  const std::vector<const Lesson*> running = runnable(lessons);
  const std::vector<Contender> contenders = rungs_of(running, options.shapes);
  if (contenders.empty()) options.shapes.clear();
  Rows rows(lessons);
  const auto afterwards = [&](ResultFile& results) {
    if (on_cpu_device() && !contenders.empty())
      print_recorded(recorded, running, width_of_rungs(contenders), rows.gains());
    print_gains(rows.gains());
    const ComparisonOptions& chosen = options.comparison;
    if (half)
      run_host_half(std::cout, *half, chosen.execution, std::min(chosen.rounds, kMaxHostRounds), results);
    if (is_whole) print_what_next(std::cout);
    std::cout.flush();
  };
  const Report report{"ladder",
                      "C = A B, bf16, summed in fp32",
                      columns(contenders, options.comparison.execution),
                      std::ref(rows),
                      true,
                      afterwards};
  return report_comparisons(report, contenders, options);
}

int run(const std::vector<const Lesson*>& kernels, const HostHalf* host_half, int argc, char** argv) {
  Arguments arguments("Climbs the ladder: every lesson, from a naive kernel up, on the same problem",
                      "ladder");
  arguments.set_footer(
      "The climb ends with the levels of lesson 07, from host memory to host memory.\n"
      "ladder learn: the exercises; see ladder learn --help\n"
      "ladder ablate: what each ingredient of a lesson is worth\n"
      "ladder tune: which of the kernels for any shape is the fastest for a shape\n"
      "ladder check my_kernel.cu: what is wrong with a kernel of your own");
  for (const char* const command : {"learn", "ablate", "tune", "check"}) arguments.suggest(command, command);
  CommonOptions options;
  std::string lesson_list, lesson_of_files, results_path;
  options.add_to(arguments);
  arguments.add_option("--lessons", lesson_list, "NN[,NN]", "Only these, for example 01,03");
  arguments.add_option("--lesson", lesson_of_files, "NN",
                       "The lesson that multiplies --a and --b (default: the last)");
  arguments.add_flag("--no-tuned", ignore_tuned_plans, "Do not use the plans that ladder tune remembers");
  if (on_cpu_device())
    arguments.add_option("--results", results_path, "PATH", "Show the GPU figures recorded in this file");
  Arguments compare = arguments.add_command("compare", "What changed between two result files");
  std::string before_path, after_path;
  bool compare_all = false;
  compare.add_option("before", before_path, "PATH", "A result file");
  compare.require("before");
  compare.add_option("after", after_path, "PATH", "A later one");
  compare.require("after");
  compare.add_flag("--all", compare_all, "Show also what changed by no more than the noise");
  if (!arguments.parse(argc, argv)) return kExitOk;
  if (compare.chosen()) {
    compare_files(std::cout, before_path, after_path, compare_all);
    return kExitOk;
  }
  options.check();
  Lesson half_as_lesson;  // to be chosen by its number; it has no rung of its own
  std::vector<const Lesson*> all_lessons = kernels;
  if (host_half) {
    half_as_lesson.name = host_half->lesson;
    all_lessons.push_back(&half_as_lesson);
  }
  const std::vector<const Lesson*> lessons = choose(all_lessons, "--lessons", lesson_list);
  const std::vector<const Lesson*> multiplier = choose(kernels, "--lesson", lesson_of_files);
  if (lessons.empty()) throw BadInput("this program was built without lessons");
  if (!lesson_of_files.empty() && (!options.files.given() || split(lesson_of_files, ',').size() != 1))
    throw std::invalid_argument(
        "--lesson " + lesson_of_files +
        ": must be one lesson, and needs --a, --b and --output; to run some, --lessons");
  require_device();

  if (options.files.given()) {
    use_schedule(options.comparison.execution, options.comparison.execution.schedules.front());
    const Lesson& lesson = *runnable(multiplier).back();
    return multiply_files(lesson, {}, options.files, options.comparison.verify) ? kExitOk : kExitFailure;
  }

  return climb(lessons, chosen_half(host_half, lessons), options, results_path, lesson_list.empty());
}

}  // namespace

int run_ladder(const std::vector<const Lesson*>& lessons, const HostHalf* host_half, int argc, char** argv) {
  return run_program("ladder", [&] { return run(lessons, host_half, argc, argv); });
}

}  // namespace ladder
