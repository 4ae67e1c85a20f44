/// @file
/// What the program of a lesson checks on the CPU device without being asked.
#include "common/host/program/unasked_checks.hpp"

#include <fmt/core.h>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/cuda/device_buffer.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/progress.hpp"

namespace ladder {
namespace {

/// More tiles than the device runs blocks at a time, and more K steps than a ring has slots. Five steps
/// are an odd number, so a tile begins neither at the slot nor at the parity of the tile before.
constexpr Shape kChecked{131, 520, 264};
/// As wide as A, so that a product can be the A of the next. Small, because only the order of launches
/// counts.
constexpr Shape kOfDependentLaunches{8, 136, 136};

/// "05_ws_double_buffer --slots 3".
std::string plain_command(const Lesson& lesson, const Contender& contender) {
  std::string command = lesson.program_name();
  for (const auto& [name, value] : contender.settings)
    if (value != lesson.default_of(name)) command += fmt::format(" --{} {}", name, value);
  return command;
}

/// Runs all of them on all schedules. @returns whether all results were right
/// @param command that repeats a run
bool all_pass(const Lesson& lesson, const std::vector<Contender>& contenders, const Shape& shape,
              const ComparisonOptions& options,
              const std::function<std::string(const Contender&, const std::string& schedule)>& command) {
  const std::vector<std::string>& schedules = options.execution.schedules;
  size_t done = 0;
  const auto repeat = [&] {
    return "repeat it with: " +
           command(contenders[done / schedules.size()], schedules[done % schedules.size()]);
  };
  bool all_right = true;
  Progress progress;
  try {
    compare(contenders, shape, options, progress, [&](const Outcome& outcome) {
      if (!outcome.complaint.empty()) {
        all_right = false;
        std::cout.flush();
        std::cerr << fmt::format("{}: error: wrong result of {} ({}, {}): {}\n{}", lesson.program_name(),
                                 outcome.contender->lesson, outcome.contender->label, outcome.schedule,
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

/// Those whose launches may begin early, each followed by a launch that multiplies the product.
std::vector<Contender> with_dependent_launches(const std::vector<Contender>& contenders, const Shape& shape) {
  std::vector<Contender> result;
  for (Contender contender : contenders) {
    const auto pdl = contender.settings.find("pdl");
    if (pdl == contender.settings.end() || pdl->second == "off") continue;
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

/// Empty; or why one of them cannot run the shape.
std::string why_refused(const Lesson& lesson, const std::vector<Contender>& contenders, const Shape& shape) {
  for (const Contender& contender : contenders) try {
      lesson.check({nullptr, nullptr, nullptr, shape.m, shape.n, shape.k}, contender.settings);
    } catch (const std::invalid_argument& reason) {
      return reason.what();
    }
  return "";
}

}  // namespace

int check_unasked(const Lesson& lesson, const std::vector<Contender>& contenders,
                  const ComparisonOptions& options) {
  const std::optional<Execution> thorough = thorough_execution();
  if (!thorough) return kExitOk;
  if (options.execution.chosen) {
    if (!options.execution.check_races) std::cout << "\nnot checked: races; --check-races does\n";
    return kExitOk;
  }
  Shape shape = lesson.cpu_check.m > 0 ? lesson.cpu_check : kChecked;
  shape.b_matrices = lesson.b_matrices;
  if (const std::string reason = why_refused(lesson, contenders, shape); !reason.empty()) {
    std::cout << fmt::format("\nnot checked: races, at {}: {}\n", shape.name(), reason);
    return kExitOk;
  }

  ComparisonOptions checks = options;
  checks.integers_alone = true;
  checks.execution = *thorough;
  checks.execution.os_threads = options.execution.os_threads;
  bool right = all_pass(lesson, contenders, shape, checks,
                        [&](const Contender& contender, const std::string& schedule) {
                          return fmt::format("{} --shape {} --schedule {} --check-races",
                                             plain_command(lesson, contender), shape.name(), schedule);
                        });
  std::string also;
  if (const auto twice = with_dependent_launches(contenders, kOfDependentLaunches); !twice.empty()) {
    also = ", and dependent launches";
    checks.execution.schedules.resize(1);
    checks.execution.check_races = checks.execution.check_grid = false;
    right &= all_pass(
        lesson, twice, kOfDependentLaunches, checks,
        [&](const Contender& contender, const std::string&) { return plain_command(lesson, contender); });
  }
  if (!right) return kExitFailure;
  std::cout << fmt::format(
      "\nchecked: races, {} schedules, at {}{}; more with --schedule all --check-races\n",
      thorough->schedules.size(), shape.name(), also);
  return kExitOk;
}

}  // namespace ladder
