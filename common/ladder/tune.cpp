/// @file
/// Measures plans of a lesson, and remembers the fastest.
#include "common/ladder/commands.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/host/base/arguments.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/tuned_plans.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/report.hpp"

namespace ladder {
namespace {

constexpr int kTunedGpuSize = 4096, kTunedCpuSize = 256;

// Of the first eight the fastest is rarely far behind the fastest of all
// (06_clusters_dsmem/deeper/the_plan.md).
constexpr uint64_t kPlansOnGpu = 8, kAllPlans = UINT64_MAX;
constexpr int kRounds = 5, kSampleMs = 100;  // a GPU at its power limit needs that to reach a kernel's clock

const Lesson& lesson_with_plans(const std::vector<const Lesson*>& lessons) {
  const auto found = std::find_if(lessons.begin(), lessons.end(),
                                  [](const Lesson* lesson) { return lesson->candidates != nullptr; });
  if (found == lessons.end()) throw BadInput("this program was built without a lesson that chooses a plan");
  return **found;
}

/// A contender for each of the first plans that run the shape, in the order of the model.
std::vector<Contender> plans_of(const Lesson& lesson, const Shape& shape, uint64_t most) {
  std::vector<Contender> contenders;
  for (const Settings& settings : lesson.candidates(shape, lesson.settings())) {
    if (contenders.size() == most) break;
    contenders.push_back(contender_of(
        lesson, lesson.choice(shape, settings) + (contenders.empty() ? " (model)" : ""), settings));
  }
  return contenders;
}

/// What a plan is judged by: microseconds; on the CPU device, where times mean nothing, cycles.
double cost_of(const Run& run) { return on_cpu_device() ? run.counters->cycles : run.time_us_median.value(); }

/// Are the medians no farther apart than both spreads together? Counted cycles have none.
bool within_noise(const Run& a, const Run& b) {
  if (on_cpu_device()) return false;
  const auto half_spread = [](const Run& run) { return (*run.time_us_q3 - *run.time_us_q1) / 2; };
  return cost_of(b) - cost_of(a) <= half_spread(a) + half_spread(b);
}

/// Makes the rows. Of each shape the first that comes is the model's choice.
class PlanRows {
 public:
  std::vector<std::string> operator()(const Outcome& outcome) {
    const Run& run = outcome.run;
    if (!(model_.shape == run.shape)) model_ = run;
    const std::string& plan = outcome.contender->label;
    const std::string speed_up = fixed(cost_of(model_) / cost_of(run), 2);
    if (on_cpu_device()) return {plan, fixed(cost_of(run), 0), speed_up, verified_cell(outcome)};
    return {plan,
            time_cell(run),
            spread_cell(run),
            tflops_cell(run),
            speed_up,
            percent_cell(outcome.percent_of_library),
            verified_cell(outcome)};
  }

 private:
  Run model_;
};

std::vector<Column> columns() {
  constexpr int kPlanWidth = 41;  // of "192x128, cluster 1x2x1, stream-K (model)"
  const Column plan{"plan", kPlanWidth, false}, speed_up{"x model", 7}, verified{"verified", 8, false};
  if (on_cpu_device()) return {plan, {"cycles", 9}, speed_up, verified};
  return {plan, {"time us", 9}, {"+- %", 5}, {"TFLOP/s", 7}, speed_up, {"% library", 9}, verified};
}

/// The knobs that the lesson leaves open by default, as they are in `settings`.
Settings plan_alone(const Lesson& lesson, const Settings& settings) {
  Settings plan = lesson.settings();
  std::erase_if(plan, [&](const auto& knob) { return settings.at(knob.first) == knob.second; });
  for (auto& [knob, value] : plan) value = settings.at(knob);
  return plan;
}

/// Says below its table which of the plans of a shape is the fastest, and returns it. Wrong results win
/// nothing.
std::optional<TunedPlan> fastest(const Lesson& lesson, const Shape& shape, const std::vector<Run>& runs) {
  std::vector<Run> plans;
  for (const Run& run : runs)
    if (run.lesson == lesson.name && run.shape == shape) plans.push_back(run);
  const Run model = plans.front();
  std::erase_if(plans, [](const Run& run) { return run.verified == false; });
  if (plans.empty()) {
    std::cout << shape.name() << ": none of these plans gave a right result.\n";
    return std::nullopt;
  }
  const Run& best = *std::min_element(plans.begin(), plans.end(),
                                      [](const Run& a, const Run& b) { return cost_of(a) < cost_of(b); });
  const std::string ratio = fixed(cost_of(model) / cost_of(best), 2);
  if (best.settings == model.settings)
    std::cout << fmt::format("{}: the model's choice, {}, is the fastest.\n", shape.name(), best.choice);
  else if (within_noise(best, model))
    std::cout << fmt::format("{}: {} is {} times as fast as the model's choice: noise.\n", shape.name(),
                             best.choice, ratio);
  else
    std::cout << fmt::format("{}: {} is {} times as fast as the model's choice.\n", shape.name(), best.choice,
                             ratio);
  return TunedPlan{tuned_here(lesson.name), lesson.name, shape, plan_alone(lesson, best.settings)};
}

/// Before the long run. What cannot be remembered is measured all the same, and loses no figures.
void warn_of_trouble() {
  try {
    prepare_tuned_plans(tuned_plans_path());
  } catch (const DamagedPlans& error) {
    std::cerr << "ladder tune: warning: " << one_line(error.what()) << "; it will become "
              << damaged_plans_path(tuned_plans_path()) << std::endl;
  } catch (const std::runtime_error& error) {
    std::cerr << "ladder tune: warning: " << one_line(error.what()) << "; nothing will be remembered"
              << std::endl;
  }
}

/// How many plans `--plans` asks for. @throws std::invalid_argument
uint64_t plans_from(const std::string& text) {
  if (text.empty()) return on_cpu_device() ? kAllPlans : kPlansOnGpu;
  if (text == "all") return kAllPlans;
  try {
    return parse_number("--plans", text, 1, 1000);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(error.what() + std::string(", or all"));
  }
}

int forget(const Lesson& lesson, const std::vector<Shape>& shapes) {
  const std::string path = tuned_plans_path();
  const std::optional<size_t> count = forget_plans(path, lesson.name, shapes);
  std::cout << path << ": "
            << (count ? fmt::format("forgot {} {}", *count, *count == 1 ? "plan" : "plans")
                      : "removed, it was damaged")
            << std::endl;
  return kExitOk;
}

int run(const std::vector<const Lesson*>& lessons, int argc, char** argv) {
  const Lesson& lesson = lesson_with_plans(lessons);
  Arguments arguments(
      "Measures plans of " + lesson.name + " and remembers the fastest, which then is its choice",
      "ladder tune");
  arguments.set_footer(
      "Plans are remembered for this GPU, driver and build, in\n"
      "  $XDG_CACHE_HOME/kernel-ladder/plans.json, else $HOME/.cache/kernel-ladder/plans.json.\n"
      "Not to use them: --no-tuned of ladder and " +
      lesson.program_name() + ", or LADDER_TUNED=no in the environment.");
  CommonOptions options;
  options.comparison.rounds = kRounds;
  options.comparison.sample_ms = kSampleMs;
  bool forget_them = false;
  std::string plans_text;
  options.add_to(arguments);
  arguments.add_option("--plans", plans_text, "N",
                       "Time the N plans that the model expects to be the fastest, or all (default " +
                           (on_cpu_device() ? std::string("all") : std::to_string(kPlansOnGpu)) + ")");
  arguments.add_flag("--forget", forget_them,
                     "Measure nothing; forget what is remembered, of the shapes given or all");
  if (!arguments.parse(argc, argv)) return kExitOk;
  options.check();
  const uint64_t most = plans_from(plans_text);
  if (options.files.given())
    throw std::invalid_argument("--a " + options.files.a + ": plans are measured on matrices made up");
  if (options.comparison.execution.schedules.size() > 1)
    throw std::invalid_argument("--schedule: must be one, to compare plans under");
  if (forget_them && !options.json_path.empty())
    throw std::invalid_argument("--json " + options.json_path + ": --forget measures nothing");
  if (forget_them && options.shapes.empty()) return forget(lesson, {});
  require_device();
  if (forget_them) return forget(lesson, options.shapes);
  if (const std::string reason = why_not_runnable(lesson); !reason.empty()) throw BadInput(reason);
  const int size = on_cpu_device() ? kTunedCpuSize : kTunedGpuSize;
  if (options.shapes.empty()) options.shapes.push_back({size, size, size});
  for (const Shape& shape : options.shapes) check_lesson(lesson, {}, shape);
  ignore_tuned_plans();  // the model's choice is what they are compared with
  warn_of_trouble();

  PlanRows rows;
  const auto contenders = [&](const Shape& shape) { return plans_of(lesson, shape, most); };
  bool remembered = false;
  std::string failure;  // the tables come first
  Report report{"ladder tune", "Plans of " + lesson.name, columns(), std::ref(rows), true};
  report.after_shape = [&](const Shape& shape, const std::vector<Run>& runs) {
    const std::optional<TunedPlan> plan = fastest(lesson, shape, runs);
    if (!plan || !failure.empty()) return;
    try {
      remember_plans(tuned_plans_path(), {*plan});
      remembered = true;
    } catch (const std::runtime_error& error) {
      failure = error.what();
    }
  };
  const int exit_code = report_comparisons(report, contenders, options);
  std::cout << "\n";
  if (on_cpu_device())
    std::cout << "Cycles are those of the virtual clock, for one block: they say nothing about a GPU.\n";
  if (remembered) std::cout << "Remembered in " << tuned_plans_path() << "\n";
  std::cout.flush();
  if (!failure.empty()) throw std::runtime_error(failure);
  return exit_code;
}

}  // namespace

int run_tune(const std::vector<const Lesson*>& lessons, int argc, char** argv) {
  return run_program("ladder tune", [&] { return run(lessons, argc, argv); });
}

}  // namespace ladder
