/// @file
/// What the program of a lesson checks on the CPU device without being asked.
#include "common/host/program/unasked_checks.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "common/cuda/device_buffer.hpp"
#include "common/host/base/progress.hpp"
#include "common/host/device/execution.hpp"

namespace ladder {
namespace {

/// K of as few steps as a contender accepts: the first of these, beginning at Lesson::cpu_check_few.
constexpr int kMoreK[] = {0, 64, 192};

/// Ragged, and with rows of whole sectors, which some kernels copy another way; and K is the largest, as M or
/// N in its place goes unnoticed where it is no smaller.
constexpr Shape kOfWholeSectors{48, 80, 272};

/// What shows a thread that comes too late to a wait, on nearly every seed.
constexpr const char* kInRandomOrder = "random:1";

/// Of the schedules that the reader has chosen, so many also run what is checked without being asked.
constexpr size_t kMostChosen = 8;

/// As wide as A, so that a product can be the A of the next. Small, because only the order of launches
/// counts.
constexpr Shape kOfDependentLaunches{8, 200, 200};

/// "05_ws_double_buffer --slots 3".
std::string plain_command(const Lesson& lesson, const Contender& contender) {
  std::string command = lesson.program_name();
  for (const auto& [name, value] : contender.settings)
    if (value != lesson.default_of(name)) command += fmt::format(" --{} {}", name, value);
  return command;
}

/// A problem that some contenders multiply.
struct Check {
  Shape shape;
  int blocks;  ///< see Execution
  std::vector<std::string> schedules;
  std::vector<Contender> contenders;
  std::vector<std::string> commands;  ///< that run them, but for the shape
};

/// Of a contender that was right on the first schedule, and then wrong on another one: was that for the
/// schedule, or because a launch came before? Empty if it is right again.
std::string explain_later_launch(const Contender& contender, const Shape& shape, ComparisonOptions options) {
  options.execution.schedules = {options.execution.schedules.front()};
  bool is_right = true;
  Progress progress;
  try {
    compare({contender}, shape, options, progress,
            [&](const Outcome& outcome) { is_right = outcome.complaint.empty(); });
  } catch (const std::runtime_error&) {
    return "";  // a broken rule says more when it is reported by itself
  }
  if (is_right) return "";
  return "right in the first launch, and wrong since, even on the same schedule: what does a launch leave "
         "behind, as in a workspace, that the next one does not expect? ";
}

/// Runs all of them on all schedules. @returns whether all results were right
/// @param with_options completes the command that repeats a run
bool all_pass(
    const Lesson& lesson, const Check& check, ComparisonOptions options,
    const std::function<std::string(const std::string& command, const std::string& schedule)>& with_options) {
  const std::vector<std::string>& schedules = check.schedules;
  options.execution.schedules = schedules;
  options.execution.blocks = check.blocks;
  size_t done = 0;
  std::vector<const Contender*> right_at_first;  // on the first schedule
  const auto repeat = [&] {
    return "repeat it with: " +
           with_options(check.commands[done / schedules.size()], schedules[done % schedules.size()]);
  };
  bool all_right = true;
  Progress progress;
  try {
    compare(check.contenders, check.shape, options, progress, [&](const Outcome& outcome) {
      if (outcome.complaint.empty()) {
        if (outcome.schedule == schedules.front()) right_at_first.push_back(outcome.contender);
      } else {
        all_right = false;
        const bool was_right = std::count(right_at_first.begin(), right_at_first.end(), outcome.contender);
        std::cout.flush();
        std::cerr << fmt::format(
                         "{}: error: wrong result of {} ({}, {}): {}{}\n{}", lesson.program_name(),
                         outcome.contender->lesson, outcome.contender->label, outcome.schedule,
                         was_right ? explain_later_launch(*outcome.contender, check.shape, options) : "",
                         outcome.complaint, repeat())
                  << std::endl;
      }
      ++done;
    });
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}\n{}", error.what(), repeat()));
  }
  return all_right;
}

/// Empty; or why it cannot run the shape.
std::string why_refused(const Lesson& lesson, const Contender& contender, const Shape& shape) {
  try {
    lesson.check({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k}, contender.settings);
  } catch (const std::invalid_argument& reason) {
    return reason.what();
  }
  return "";
}

/// Those whose launches may begin early, each followed by a launch that multiplies the product.
std::vector<Contender> with_dependent_launches(const Lesson& lesson, const std::vector<Contender>& contenders,
                                               const Shape& shape) {
  std::vector<Contender> result;
  for (Contender contender : contenders) {
    const auto pdl = contender.settings.find("pdl");
    if (pdl == contender.settings.end() || pdl->second == "off") continue;
    if (!why_refused(lesson, contender, shape).empty()) continue;
    contender.launch = [launch = contender.launch,
                        c = std::make_shared<DeviceBuffer<__nv_bfloat16>>(size_t(shape.m) * shape.n)](
                           const Gemm& gemm, cudaStream_t stream) {
      launch(gemm, stream);
      Gemm next = gemm;
      next.a = gemm.c;
      next.c = c->data();
      launch(next, stream);
    };
    result.push_back(contender);
  }
  return result;
}

/// What the table is about, whose kernels run each check, too.
struct Asked {
  const std::vector<Shape>& shapes;
  int blocks;  ///< see Execution
};

/// What the contender takes for a shape where a persistent kernel has so many blocks; see Execution.
TakenKernel taken_by(const Lesson& lesson, const Contender& contender, const Shape& shape, int blocks) {
  if (!lesson.taken) return {};
  Execution execution;
  execution.blocks = blocks;
  use_schedule(execution, "");
  return lesson.taken(shape, contender.settings);
}

/// Lesson::cpu_check and kOfWholeSectors, on the grid that the device gives each kernel; and
/// Lesson::cpu_check_few, whose tiles are all of one block, or cluster. What a lesson refuses is left out:
/// see `left_out`.
/// @param kernels is given those that run, of a lesson that chooses
std::vector<Check> checks_of(const Lesson& lesson, const std::vector<Contender>& contenders,
                             const Asked& asked, const std::vector<std::string>& schedules,
                             const std::vector<std::string>& schedules_of_few, std::string& left_out,
                             std::set<std::string>& kernels) {
  std::vector<Check> checks;
  const auto add = [&](Shape shape, int blocks, const std::vector<std::string>& chosen,
                       const Contender& contender) {
    shape.b_matrices = lesson.b_matrices;
    const std::string reason = why_refused(lesson, contender, shape);
    if (!reason.empty()) return reason;
    const auto is_this = [&](const Check& check) {
      return check.shape.name() == shape.name() && check.blocks == blocks;
    };
    auto check = std::find_if(checks.begin(), checks.end(), is_this);
    if (check == checks.end()) check = checks.insert(check, {shape, blocks, chosen, {}, {}});
    const auto add_once = [&](const Contender& one, const std::string& command) {
      if (std::count(check->commands.begin(), check->commands.end(), command)) return;
      check->contenders.push_back(one);
      check->commands.push_back(command);
    };
    add_once(contender, plain_command(lesson, contender));
    const std::string own = taken_by(lesson, contender, shape, blocks).id;
    if (lesson.taken) kernels.insert(own.empty() ? contender.label : own);
    for (const Shape& large : asked.shapes) {
      const TakenKernel taken = taken_by(lesson, contender, large, asked.blocks);
      if (taken.id == own) continue;
      kernels.insert(taken.id);
      Contender forced = contender;
      forced.label = "the kernel of " + taken.id;
      forced.launch = taken.launch;
      add_once(forced, taken.command);
    }
    return reason;
  };
  for (const Contender& contender : contenders)
    if (const std::string reason = add(lesson.cpu_check, 0, schedules, contender); !reason.empty())
      left_out = fmt::format("\nnot checked: races, at {}: {}\n", lesson.cpu_check.name(), reason);
  for (const Contender& contender : contenders)
    for (const int more : kMoreK) {
      Shape shape = lesson.cpu_check_few;
      shape.k += more;
      if (add(shape, 1, schedules_of_few, contender).empty()) break;
    }
  for (const Contender& contender : contenders) add(kOfWholeSectors, 0, schedules_of_few, contender);
  return checks;
}

/// "05, 06 and 06.1".
std::string listed(const std::vector<std::string>& all) {
  std::string list;
  for (size_t i = 0; i < all.size(); ++i)
    list += (i == 0 ? "" : i + 1 < all.size() ? ", " : " and ") + all[i];
  return list;
}

/// "131x520x264 on 2 schedules, 40x1288x24 and 48x80x272".
std::string names_of(const std::vector<Check>& checks) {
  std::vector<std::string> names;
  for (const Check& check : checks)
    names.push_back(check.shape.name() + (check.schedules.size() > 1
                                              ? fmt::format(" on {} schedules", check.schedules.size())
                                              : ""));
  return listed(names);
}

/// ", in the kernels of 05 and 05.2"; empty if the lesson chooses none.
std::string names_of(const std::set<std::string>& kernels) {
  if (kernels.empty()) return "";
  return (kernels.size() > 1 ? ", in the kernels of " : ", in the kernel of ") +
         listed({kernels.begin(), kernels.end()});
}

}  // namespace

std::string not_shown_by(const Run& run) {
  if (!run.counters) return "";
  std::string reasons;
  if (run.counters->has_one_piece_each) reasons = "no block has more than one tile";
  if (run.counters->slot_fills == 1)
    reasons += std::string(reasons.empty() ? "" : ", and ") + "no slot is filled twice: the ring never wraps";
  return reasons.empty() ? "" : fmt::format("{} cannot show all: {}", run.shape.name(), reasons);
}

UnaskedChecks check_unasked(const Lesson& lesson, const std::vector<Contender>& contenders,
                            const ComparisonOptions& options, const std::vector<Shape>& asked) {
  const std::optional<Execution> thorough = thorough_execution();
  if (!thorough) return {};
  if (options.execution.only_asked)
    return {true, options.execution.check_races ? "" : "\nnot checked: races; --check-races does\n"};
  ComparisonOptions tried = options;
  tried.integers_alone = true;
  tried.execution = *thorough;
  tried.execution.os_threads = options.execution.os_threads;
  tried.execution.all_lines = options.execution.all_lines;
  UnaskedChecks result;
  // What the reader chooses comes on top.
  std::vector<std::string> schedules = thorough->schedules, schedules_of_few = {schedules.front()};
  size_t chosen = 0;
  for (const std::string& schedule : options.execution.schedules) {
    if (schedule.empty() || ++chosen > kMostChosen) continue;
    for (auto* all : {&schedules, &schedules_of_few})
      if (std::find(all->begin(), all->end(), schedule) == all->end()) all->push_back(schedule);
  }
  std::set<std::string> kernels;
  const std::vector<Check> checks = checks_of(lesson, contenders, {asked, options.execution.blocks},
                                              schedules, schedules_of_few, result.line, kernels);
  const auto blocks = [](const Check& check) {
    return check.blocks ? fmt::format(" --resident-blocks {}", check.blocks) : "";
  };
  for (const Check& check : checks) {
    result.passed &=
        all_pass(lesson, check, tried, [&](const std::string& command, const std::string& schedule) {
          return fmt::format("{} --shape {}{} --schedule {} --check-races", command, check.shape.name(),
                             blocks(check), schedule);
        });
  }
  // Where threads run in turn, those that wait together also pass together. In a random order one may be
  // late, and find that its barrier has gone on. To see that, no access need be watched.
  ComparisonOptions shuffled = tried;
  shuffled.execution.check_races = shuffled.execution.check_grid = false;
  for (Check check : checks) {
    check.schedules = {kInRandomOrder};
    result.passed &=
        all_pass(lesson, check, shuffled, [&](const std::string& command, const std::string& schedule) {
          return fmt::format("{} --shape {}{} --schedule {}", command, check.shape.name(), blocks(check),
                             schedule);
        });
  }
  std::string also;
  if (const auto twice = with_dependent_launches(lesson, contenders, kOfDependentLaunches); !twice.empty()) {
    also = ", and dependent launches";
    tried.execution.check_races = tried.execution.check_grid = false;
    std::vector<std::string> commands;
    for (const Contender& contender : twice) commands.push_back(plain_command(lesson, contender));
    result.passed &=
        all_pass(lesson, {kOfDependentLaunches, 0, {thorough->schedules.front()}, twice, commands}, tried,
                 [](const std::string& command, const std::string&) { return command; });
  }
  if (!checks.empty())
    result.line += fmt::format("\nchecked: races, at {}{}{}{}\n", names_of(checks), names_of(kernels), also,
                               options.execution.chosen ? "" : "; more with --schedule all --check-races");
  return result;
}

}  // namespace ladder
