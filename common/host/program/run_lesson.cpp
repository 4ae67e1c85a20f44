/// @file
/// The program of a lesson.
#include "common/host/program/run_lesson.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <iostream>

#include "common/host/base/arguments.hpp"
#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/tuned_plans.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/report.hpp"
#include "common/host/program/trace_contender.hpp"
#include "common/host/program/unasked_checks.hpp"

namespace ladder {
namespace {

constexpr int kDefaultGpuSize = 4096;

void print_choices(const Lesson& lesson) {
  std::cout << wrapped(lesson.program_name() + ": " + lesson.idea, kTerminalColumns, "\n")
            << "\n\nKnobs, the default first:\n";
  for (const Knob& knob : lesson.knobs)
    std::cout << "  --" << knob.name << " " << join(knob.choices, ",") << "\n      "
              << wrapped(knob.help, kTerminalColumns - 6, "\n      ") << "\n";
  std::cout << "\nNamed shapes (MxNxK):\n";
  for (const NamedShape& named : named_shapes())
    std::cout << "  --shape " << named.name << "  " << named.shape.name() << "\n";
}

/// A column of the table, and what stands in it.
struct Figure {
  Column column;
  std::function<std::string(const Outcome&)> cell;
};

/// A cell that is made from the outcome's run alone.
std::function<std::string(const Outcome&)> of_run(std::string (*cell)(const Run&)) {
  return [cell](const Outcome& outcome) { return cell(outcome.run); };
}

/// Do its blocks form clusters? Then the reader chooses how many.
bool has_clusters(const Lesson& lesson) {
  return std::any_of(lesson.knobs.begin(), lesson.knobs.end(),
                     [](const Knob& knob) { return knob.name.rfind("cluster", 0) == 0; });
}

std::vector<Figure> cpu_figures(const Lesson& lesson, const Execution& execution) {
  std::vector<Figure> figures;
  // A column for the schedule, or for what the lesson chooses, takes the place of others.
  const int schedule_width = widest_schedule(execution);
  const bool all = !schedule_width && !lesson.choice;
  if (schedule_width)
    figures.push_back(
        {{"schedule", schedule_width, false}, [](const Outcome& outcome) { return outcome.schedule; }});
  figures.push_back({{"B/output", 8}, of_run(bytes_per_output_cell)});
  if (has_clusters(lesson)) figures.push_back({{"cluster B", 9}, of_run(cluster_bytes_per_output_cell)});
  if (all) figures.push_back({{"flops/B", 7}, of_run(flops_per_byte_cell)});
  figures.push_back(
      {{"waits", 8}, [](const Outcome& outcome) { return count_cell(outcome.run.counters->barrier_waits); }});
  if (!lesson.choice)
    figures.push_back({{"conflicts", 9}, [](const Outcome& outcome) {
                         return count_cell(outcome.run.counters->bank_conflicts);
                       }});
  if (all) figures.push_back({{"overlap", 7}, of_run(overlap_cell)});
  return figures;
}

std::vector<Figure> gpu_figures(int time_width) {
  return {
      {{"time us", time_width}, of_run(time_cell)},
      {{"+- %", 5}, of_run(spread_cell)},
      {{"TFLOP/s", 7}, of_run(tflops_cell)},
      {{"% library", 9}, [](const Outcome& outcome) { return percent_cell(outcome.percent_of_library); }}};
}

/// A contender's label; where a lesson chooses, also the choice in its shortest form.
/// Libraries choose nothing, so that their names, which are long, may take the room of both.
Figure named(const std::vector<Contender>& contenders, const std::vector<Shape>& shapes, bool with_choice) {
  constexpr int kWidestLibrary = 32;
  const std::string title = "settings";
  const int label_width = std::max<int>(title.size(), widest_label(contenders));
  const int library_width = on_cpu_device() ? 0 : kWidestLibrary;
  if (!with_choice)
    return {{title, std::max(label_width, library_width), false},
            [](const Outcome& outcome) { return outcome.contender->label; }};
  const auto side_by_side = [label_width](const std::string& label, std::string choice) {
    static const std::string kCluster = "cluster ";
    if (const size_t at = choice.find(kCluster); at != std::string::npos) choice.erase(at, kCluster.size());
    return fmt::format("{:<{}}  {}", label, label_width, choice);
  };
  size_t width = library_width;
  for (const Contender& contender : contenders)
    for (const Shape& shape : shapes)
      width = std::max(width, side_by_side(contender.label, contender.choice(shape)).size());
  return {{side_by_side(title, "choice"), static_cast<int>(width), false},
          [side_by_side](const Outcome& outcome) {
            return outcome.run.choice.empty() ? outcome.contender->label
                                              : side_by_side(outcome.contender->label, outcome.run.choice);
          }};
}

/// The table of a lesson. Where it says what its blocks take, or what it chooses, columns more are too wide,
/// so that every shape gets a table of its own. On the GPU the last rows are those of the libraries.
Report make_report(const Lesson& lesson, const std::vector<Contender>& contenders,
                   const CommonOptions& options) {
  const bool with_resources = lesson.resources != nullptr, with_choice = lesson.choice != nullptr;
  const bool table_for_each_shape = with_resources || with_choice;
  std::vector<Figure> figures;
  if (!table_for_each_shape)
    figures.push_back({{"shape", widest_shape(options.shapes), false},
                       [](const Outcome& outcome) { return outcome.run.shape.name(); }});
  figures.push_back(named(contenders, options.shapes, with_choice));
  const std::vector<Figure> measured = on_cpu_device() ? cpu_figures(lesson, options.comparison.execution)
                                                       : gpu_figures(table_for_each_shape ? 7 : 10);
  figures.insert(figures.end(), measured.begin(), measured.end());
  if (with_resources) {
    figures.push_back({{"smem KB", 7}, of_run(shared_kb_cell)});
    if (!on_cpu_device()) {
      figures.push_back({{"regs", 4}, of_run(registers_cell)});
      figures.push_back({{"blk/SM", 6}, of_run(blocks_cell)});
    }
  }
  figures.push_back({{"verified", 8, false}, verified_cell});

  Report report{lesson.program_name(), lesson.idea, {}, {}, table_for_each_shape};
  for (const Figure& figure : figures) report.columns.push_back(figure.column);
  report.cells = [figures](const Outcome& outcome) {
    std::vector<std::string> cells;
    for (const Figure& figure : figures) cells.push_back(figure.cell(outcome));
    return cells;
  };
  return report;
}

/// What the lesson says of rows of the table, in lines below it.
void print_remarks(const Lesson& lesson, const Shape& shape, const std::vector<Settings>& rows) {
  for (const Settings& settings : rows)
    if (const std::string remark = lesson.remark(shape, lesson.settings(settings)); !remark.empty())
      std::cout << wrapped(describe(settings) + ": " + remark, kTerminalColumns, "\n  ") << "\n";
}

/// @throws std::invalid_argument for what cannot be combined with --trace
void check_trace(const TraceRequest& request, const CommonOptions& options, size_t combinations) {
  const std::string argument = "--trace " + request.path;
  check_writable("--trace", request.path);
  if (options.files.given() || !options.json_path.empty())
    throw std::invalid_argument(argument + ": cannot be combined with --a or --json");
  if (combinations > 1 || options.shapes.size() > 1 || options.comparison.execution.schedules.size() > 1)
    throw std::invalid_argument(argument + ": is of one launch; give one value for each option");
}

/// Adds the rows of Lesson::cpu_rows that all shapes allow: those that choose more than the reader has
/// chosen, and nothing else.
void add_cpu_rows(const Lesson& lesson, const std::vector<Shape>& shapes,
                  std::vector<Settings>& combinations) {
  if (!on_cpu_device()) return;
  const std::vector<Settings> chosen = combinations;
  const auto adds_to_a_choice = [&](const Settings& row) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const Settings& one) {
      return one != row && std::includes(row.begin(), row.end(), one.begin(), one.end());
    });
  };
  for (const Settings& settings : lesson.cpu_rows) {
    const bool runs = std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
      try {
        check_lesson(lesson, settings, shape);
        return true;
      } catch (const std::invalid_argument&) {
        return false;
      }
    });
    const bool is_new = std::find(chosen.begin(), chosen.end(), settings) == chosen.end();
    if (runs && is_new && adds_to_a_choice(settings)) combinations.push_back(settings);
  }
}

/// The combinations that can run all shapes. Of several, the lesson may refuse some: a line says which.
/// @throws std::invalid_argument if it refuses all
std::vector<Settings> without_refused(const Lesson& lesson, const std::vector<Shape>& shapes,
                                      const std::vector<Settings>& combinations) {
  std::vector<Settings> runnable;
  std::vector<std::string> reasons;
  for (const Settings& settings : combinations) try {
      for (const Shape& shape : shapes) check_lesson(lesson, settings, shape);
      runnable.push_back(settings);
    } catch (const std::invalid_argument& reason) {
      if (std::find(reasons.begin(), reasons.end(), reason.what()) == reasons.end())
        reasons.push_back(reason.what());
    }
  if (runnable.empty()) throw std::invalid_argument(reasons.front());
  for (const std::string& reason : reasons) std::cout << "left out: " << reason << "\n";
  return runnable;
}

/// What the command line asks for.
struct Request {
  CommonOptions options;
  KnobOptions knobs;
  TraceRequest trace;
  std::string trace_blocks;
  bool list = false, explain = false;

  void add_to(Arguments& arguments, const Lesson& lesson) {
    options.add_to(arguments);
    knobs.add_to(arguments, lesson);
    arguments.add_option("--trace", trace.path, "PATH",
                         "Write a timeline of one launch to this file, for ui.perfetto.dev");
    arguments.suggest("--timeline", "--trace");
    arguments.add_option("--trace-blocks", trace_blocks, "N",
                         "Keep only the first so many of the recorded blocks");
    arguments.add_hidden_option("--untraced-us", trace.untraced_us);  // passed on by the plain program
    if (lesson.explain)
      arguments.add_flag("--explain", explain,
                         "Say what the lesson chooses for each shape and why, and run nothing");
    if (lesson.candidates)
      arguments.add_flag("--no-tuned", ignore_tuned_plans, "Do not use the plans that ladder tune remembers");
    arguments.add_flag("--list", list, "List the knobs with their choices, and the named shapes");
  }

  /// @param combinations how many settings of the knobs are asked for
  void check(size_t combinations) {
    if (!trace_blocks.empty()) {
      trace.blocks = parse_number("--trace-blocks", trace_blocks, 1, 1000);
      if (trace.path.empty())
        throw std::invalid_argument("--trace-blocks " + trace_blocks + ": needs --trace");
    }
    if (!trace.path.empty()) check_trace(trace, options, combinations);
    if (explain && (options.files.given() || !options.json_path.empty() || !trace.path.empty()))
      throw std::invalid_argument(
          "--explain: runs nothing, and cannot be combined with --a, --json or --trace");
  }
};

int multiply_given_files(const Lesson& lesson, const std::vector<Settings>& combinations,
                         const CommonOptions& options) {
  if (combinations.size() > 1)
    throw std::invalid_argument("--a " + options.files.a + ": each knob can have only one value with it");
  if (lesson.b_matrices > 1)
    throw std::invalid_argument(fmt::format("--b {}: {} multiplies by {} matrices, and a file holds one",
                                            options.files.b, lesson.program_name(), lesson.b_matrices));
  use_schedule(options.comparison.execution, options.comparison.execution.schedules.front());
  return multiply_files(lesson, combinations.front(), options.files, options.comparison.verify)
             ? kExitOk
             : kExitFailure;
}

int explain_choices(const Lesson& lesson, const std::vector<Settings>& combinations,
                    const std::vector<Shape>& shapes) {
  for (const Shape& shape : shapes)
    for (const Settings& settings : combinations) check_lesson(lesson, settings, shape);
  for (const Shape& shape : shapes)
    for (const Settings& settings : combinations) {
      if (combinations.size() > 1) std::cout << describe(settings) << "\n";
      std::cout << lesson.explain(shape, lesson.settings(settings)) << "\n";
    }
  return kExitOk;
}

int compare(const Lesson& lesson, const std::vector<Settings>& runnable,
            const std::vector<Contender>& contenders, const CommonOptions& options) {
  Report report = make_report(lesson, contenders, options);
  std::vector<std::string> not_shown;
  report.after_shape = [&](const Shape& shape, const std::vector<Run>& runs) {
    if (lesson.remark) print_remarks(lesson, shape, runnable);
    const std::string line = options.comparison.execution.chosen ? not_shown_by(runs.back()) : "";
    if (!line.empty()) not_shown.push_back(line);
  };
  // First, because the CPU device names the causes of wrong results, which the table shows.
  const UnaskedChecks checks = check_unasked(lesson, contenders, options.comparison, options.shapes);
  if (!checks.passed) return kExitFailure;
  const int exit_code = report_comparisons(report, contenders, options);
  for (const std::string& line : not_shown) std::cout << "\n" << line << "\n";
  std::cout << checks.line << std::flush;
  return exit_code;
}

int run(const Lesson& lesson, int argc, char** argv) {
  Arguments arguments(lesson.idea, lesson.program_name());
  Request request;
  request.add_to(arguments, lesson);
  if (!arguments.parse(argc, argv)) return kExitOk;
  if (request.list) {
    print_choices(lesson);
    return kExitOk;
  }
  CommonOptions& options = request.options;
  options.check();
  std::vector<Settings> combinations = request.knobs.combinations(lesson);
  request.check(combinations.size());
  require_device();
  if (const std::string reason = why_not_runnable(lesson); !reason.empty()) throw BadInput(reason);
  if (options.files.given()) return multiply_given_files(lesson, combinations, options);

  if (options.shapes.empty())
    options.shapes.push_back(on_cpu_device() ? lesson.cpu_shape
                                             : Shape{kDefaultGpuSize, kDefaultGpuSize, kDefaultGpuSize});
  for (Shape& shape : options.shapes) shape.b_matrices = lesson.b_matrices;
  if (request.explain) return explain_choices(lesson, combinations, options.shapes);

  const bool traced = !request.trace.path.empty();
  if (!traced) add_cpu_rows(lesson, options.shapes, combinations);
  const std::vector<Settings> runnable = without_refused(lesson, options.shapes, combinations);
  std::vector<Contender> contenders;
  for (const Settings& settings : runnable) {
    contenders.push_back(contender_of(lesson, describe(settings), settings));
    if (!on_cpu_device())  // they are for the clock
      for (const Contender& other : alternatives_to(lesson, describe(settings), settings))
        contenders.push_back(other);
  }
  if (traced)
    return trace_contender(contenders.front(), options.shapes.front(), options.comparison, request.trace,
                           argv);
  return compare(lesson, runnable, contenders, options);
}

}  // namespace

int run_lesson(const Lesson& lesson, int argc, char** argv) {
  return run_program(lesson.program_name(), [&] { return run(lesson, argc, argv); });
}

}  // namespace ladder
