/// @file
/// The program of a lesson.
#include "common/host/run_lesson.hpp"

#include <algorithm>
#include <iostream>

#include "common/host/command_line.hpp"
#include "common/host/device.hpp"
#include "common/host/program.hpp"
#include "common/host/report.hpp"
#include "common/host/text.hpp"

namespace ladder {
namespace {

constexpr int kDefaultGpuSize = 4096;
constexpr int kDefaultCpuSize = 256;

void print_choices(const Lesson& lesson) {
  std::cout << lesson.name << ": " << lesson.idea << "\n\nKnobs, the default first:\n";
  for (const Knob& knob : lesson.knobs)
    std::cout << "  --" << knob.name << " " << join(knob.choices, ",") << "  " << knob.help << "\n";
  std::cout << "\nNamed shapes (MxNxK):\n";
  for (const NamedShape& named : named_shapes())
    std::cout << "  --shape " << named.name << "  " << named.shape.name() << "\n";
}

/// Columns and cells on the CPU device. A column for the schedule takes the place of others.
Report cpu_report(const Lesson& lesson, const std::vector<Contender>& contenders,
                  const CommonOptions& options) {
  const int shape_width = widest_shape(options.shapes), settings_width = widest_label(contenders);
  if (const int schedule_width = widest_schedule(options.comparison.execution))
    return {lesson.name,
            lesson.idea,
            {{"shape", shape_width, false},
             {"settings", settings_width, false},
             {"schedule", schedule_width, false},
             {"B/output", 8},
             {"waits", 8},
             {"conflicts", 9},
             {"verified", 8, false}},
            [](const Outcome& outcome) {
              const Run& run = outcome.run;
              return std::vector<std::string>{run.shape.name(),
                                              outcome.contender->label,
                                              outcome.schedule,
                                              bytes_per_output_cell(run),
                                              count_cell(run.counters->barrier_waits),
                                              count_cell(run.counters->bank_conflicts),
                                              verified_cell(outcome)};
            }};
  return {lesson.name,
          lesson.idea,
          {{"shape", shape_width, false},
           {"settings", settings_width, false},
           {"B/output", 8},
           {"flops/B", 7},
           {"waits", 8},
           {"conflicts", 9},
           {"overlap", 7},
           {"verified", 8, false}},
          [](const Outcome& outcome) {
            const Run& run = outcome.run;
            return std::vector<std::string>{run.shape.name(),
                                            outcome.contender->label,
                                            bytes_per_output_cell(run),
                                            flops_per_byte_cell(run),
                                            count_cell(run.counters->barrier_waits),
                                            count_cell(run.counters->bank_conflicts),
                                            overlap_cell(run),
                                            verified_cell(outcome)};
          }};
}

/// Columns and cells on the GPU. The last rows are those of the libraries.
Report gpu_report(const Lesson& lesson, const std::vector<Contender>& contenders,
                  const CommonOptions& options) {
  constexpr int kWidestLibrary = 32;
  return {lesson.name,
          lesson.idea,
          {{"shape", widest_shape(options.shapes), false},
           {"settings", std::max(widest_label(contenders), kWidestLibrary), false},
           {"time us", 10},
           {"+- %", 5},
           {"TFLOP/s", 7},
           {"% cuBLAS", 8},
           {"verified", 8, false}},
          [](const Outcome& outcome) {
            const Run& run = outcome.run;
            return std::vector<std::string>{run.shape.name(),      outcome.contender->label,
                                            time_cell(run),        spread_cell(run),
                                            tflops_cell(run),      percent_cell(outcome.percent_of_cublas),
                                            verified_cell(outcome)};
          }};
}

int run(const Lesson& lesson, int argc, char** argv) {
  CLI::App app(lesson.idea, lesson.name);
  CommonOptions options;
  KnobOptions knobs;
  bool list = false;
  options.add_to(app);
  knobs.add_to(app, lesson);
  app.add_flag("--list", list, "List the knobs with their choices, and the named shapes");
  if (!parse_arguments(app, argc, argv)) return kExitOk;
  if (list) {
    print_choices(lesson);
    return kExitOk;
  }
  options.check();
  const std::vector<Settings> combinations = knobs.combinations(lesson);
  require_device();
  if (const std::string reason = why_not_runnable(lesson); !reason.empty()) throw BadInput(reason);

  if (options.files.given()) {
    if (combinations.size() > 1)
      throw std::invalid_argument("--a " + options.files.a + ": each knob can have only one value with it");
    use_schedule(options.comparison.execution, options.comparison.execution.schedules.front());
    return multiply_files(lesson, combinations.front(), options.files, options.comparison.verify)
               ? kExitOk
               : kExitFailure;
  }

  const int size = on_cpu_device() ? kDefaultCpuSize : kDefaultGpuSize;
  if (options.shapes.empty()) options.shapes.push_back({size, size, size});
  std::vector<Contender> contenders;
  for (const Settings& settings : combinations) {
    contenders.push_back(contender_of(lesson, describe(settings), settings));
    for (const Shape& shape : options.shapes) check_lesson(lesson, settings, shape);
  }
  const Report report =
      on_cpu_device() ? cpu_report(lesson, contenders, options) : gpu_report(lesson, contenders, options);
  return report_comparisons(report, contenders, options);
}

}  // namespace

int run_lesson(const Lesson& lesson, int argc, char** argv) {
  return run_program(lesson.name, [&] { return run(lesson, argc, argv); });
}

}  // namespace ladder
