/// @file
/// What the tests of all lessons share.
#include "common/testing/gemm_checks.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>

#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/program/program.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/schedules.hpp"

namespace ladder::testing {
namespace {

constexpr uint64_t kDataSeed = 1;
/// The environment variable that says how many schedules are random.
constexpr const char* kSeedsVariable = "LADDER_TEST_SEEDS";

/// The verifier of a shape. Tests try many settings and schedules on one shape, so the last one is kept.
Verifier& verifier_of(const Shape& shape) {
  static Shape last_shape;
  static std::unique_ptr<Verifier> verifier;
  if (!verifier || shape != last_shape) {
    verifier = nullptr;
    verifier = std::make_unique<Verifier>(shape, kDataSeed);
    last_shape = shape;
  }
  return *verifier;
}

/// What was thrown and by which run, for messages.
std::string message_of(const std::exception& error, const std::string& command) {
  return std::string(error.what()) + "\nrepeat it with: " + command;
}

/// Fails unless `call` throws std::invalid_argument that says all the words.
void expect_invalid_argument(const std::function<void()>& call, const std::vector<std::string>& words) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    for (const std::string& word : words) {
      INFO("what it says: " << what << "\nwhat is missing: " << word);
      CHECK(what.find(word) != std::string::npos);
    }
    return;
  }
  FAIL_CHECK("was not refused");
}

/// Of those that a test asks for.
int random_seeds_tried(Breadth breadth, int asked_for) {
  if (const char* text = std::getenv(kSeedsVariable))
    return static_cast<int>(parse_number(kSeedsVariable, text, 0, 1000000));
  return breadth == Breadth::more ? asked_for : breadth == Breadth::usual ? std::min(asked_for, 1) : 0;
}

void run_by(const TestSchedule& schedule, const std::function<void()>& test) {
  use_test_schedule(schedule);
  INFO("schedule " << (schedule.name.empty() ? "of the GPU" : schedule.name));
  test();
}

std::vector<TestSchedule> schedules_of(Breadth breadth, int random_seeds) {
  return test_schedules(breadth, random_seeds_tried(breadth, random_seeds));
}

std::vector<TestSchedule> two_schedules() {
  return schedules_of(breadth() == Breadth::more ? Breadth::more : std::min(breadth(), Breadth::narrow),
                      /*random_seeds=*/1);
}

/// Of those two the one whose turn it is.
std::vector<TestSchedule> schedules_by_turns() {
  std::vector<TestSchedule> schedules = two_schedules();
  static size_t turn = 0;
  if (breadth() != Breadth::more && !std::getenv(kSeedsVariable))
    schedules = {schedules[turn++ % schedules.size()]};
  return schedules;
}

/// With the usual breadth those that check for races, and the next of the others.
std::vector<TestSchedule> three_schedules(int random_seeds) {
  std::vector<TestSchedule> schedules = schedules_of(breadth(), random_seeds);
  if (breadth() != Breadth::usual || std::getenv(kSeedsVariable)) return schedules;
  const auto others = std::stable_partition(schedules.begin(), schedules.end(),
                                            [](const TestSchedule& one) { return one.check_races; });
  static size_t turn = 0;
  std::iter_swap(others, others + turn++ % (schedules.end() - others));
  schedules.erase(others + 1, schedules.end());
  return schedules;
}

/// What a run multiplies: small integers show every product that is missing or wrong, and normal data how
/// sums are rounded. Where an epilogue is not exact, there is normal data alone, which then counts as
/// integers.
enum class Data { integers, normal, both };

Verdict verdict_of(Verifier& verifier, const Multiply& multiply, const ReferenceEpilogue& epilogue,
                   Data data) {
  if (data == Data::both || !epilogue.exact) return verifier.check(multiply, epilogue);
  return data == Data::integers ? verifier.check_exact(multiply, epilogue)
                                : verifier.check_normal(multiply, epilogue);
}

void check_on(Data data, const Lesson& lesson, const Shape& shape, const Settings& settings) {
  const std::string command = replay_command(lesson, shape, settings);
  try {
    std::vector<Contender> contenders = alternatives_to(lesson, lesson.name, settings);
    contenders.push_back(contender_of(lesson, lesson.name, settings));
    for (const Contender& contender : contenders) {
      if (data == Data::normal && !contender.epilogue.exact) continue;
      const Multiply multiply = [&](const Gemm& gemm) { multiply_and_wait(contender, gemm); };
      const Verdict verdict = verdict_of(verifier_of(shape), multiply, contender.epilogue, data);
      INFO(contender.label << ": " << verdict.complaint << "\nrepeat it with: " << command);
      CHECK(verdict.passed());
    }
  } catch (const std::exception& error) {
    FAIL_CHECK(message_of(error, command));
  }
}

/// AddressSanitizer sees the same accesses with either kind, and what `more` adds are schedules: they move
/// when values arrive, and not how sums are rounded.
bool integers_suffice() { return breadth() == Breadth::one || breadth() == Breadth::more; }

/// Integers by every schedule; normal data by the first alone, without a look for races: its accesses are the
/// same.
void check_on_schedules(const std::vector<TestSchedule>& schedules, const Lesson& lesson, const Shape& shape,
                        const Settings& settings) {
  for (const TestSchedule& schedule : schedules)
    run_by(schedule, [&] { check_on(Data::integers, lesson, shape, settings); });
  if (integers_suffice()) return;
  run_by({schedules.front().name}, [&] { check_on(Data::normal, lesson, shape, settings); });
}

}  // namespace

void skip_unless_runnable(const Lesson& lesson, const std::string& core) {
  if (on_cpu_device()) return;
  try {
    require_device();
  } catch (const BadInput& error) {
    SKIP(error.what());
  }
  if (const std::string reason = why_not_runnable(lesson); !reason.empty()) SKIP(reason);
  if (core.empty()) return;
  if (const std::string reason = why_not({kTuring, {core}}, this_target()); !reason.empty())
    SKIP(core + " " + reason);
}

std::vector<std::string> loaders_without_wgmma() {
  if (this_target().code.architecture < kHopper) return {"cp_async"};
  return {"cp_async", "tma"};
}

void for_each_schedule(const std::function<void()>& test, int random_seeds) {
  for (const TestSchedule& schedule : schedules_of(breadth(), random_seeds)) run_by(schedule, test);
}

void for_three_schedules(const std::function<void()>& test, int random_seeds) {
  for (const TestSchedule& schedule : three_schedules(random_seeds)) run_by(schedule, test);
}

void for_two_schedules(const std::function<void()>& test) {
  for (const TestSchedule& schedule : two_schedules()) run_by(schedule, test);
}

void for_schedules_by_turns(const std::function<void()>& test) {
  for (const TestSchedule& schedule : schedules_by_turns()) run_by(schedule, test);
}

void check_gemm(const Lesson& lesson, const Shape& shape, const Settings& settings) {
  check_on(integers_suffice() ? Data::integers : Data::both, lesson, shape, settings);
}

void check_gemm_on_three_schedules(const Lesson& lesson, const Shape& shape, const Settings& settings,
                                   int random_seeds) {
  check_on_schedules(three_schedules(random_seeds), lesson, shape, settings);
}

void check_gemm_by_turns(const Lesson& lesson, const Shape& shape, const Settings& settings) {
  check_on_schedules(schedules_by_turns(), lesson, shape, settings);
}

void check_ring(const Lesson& lesson, int slots, const std::function<Shape(int)>& shape_of,
                const Settings& settings, int random_seeds) {
  for (const int steps : trip_counts(slots))
    if (steps == slots || steps == slots + 1)
      check_gemm_on_three_schedules(lesson, shape_of(steps), settings, random_seeds);
    else
      check_gemm_by_turns(lesson, shape_of(steps), settings);
}

void expect_refused(const Lesson& lesson, const Shape& shape, const Settings& settings,
                    const std::vector<std::string>& words) {
  const Settings all = lesson.settings(settings);
  // Nothing may be launched, so no memory is needed.
  const Gemm gemm{nullptr, nullptr, nullptr, shape.m, shape.n, shape.k};
  INFO(replay_command(lesson, shape, settings) << " must be refused");
  expect_invalid_argument([&] { lesson.check(gemm, all); }, words);
  expect_invalid_argument([&] { lesson.launch(gemm, all, nullptr); }, words);
}

std::vector<int> trip_counts(int slots) {
  std::set<int> counts;
  for (int count : {1, slots - 1, slots, slots + 1, 3 * slots + 1})
    if (count >= 1) counts.insert(count);
  return {counts.begin(), counts.end()};
}

std::string replay_command(const Lesson& lesson, const Shape& shape, const Settings& settings) {
  std::string command = lesson.program_name() + " --shape " + shape.name();
  for (const auto& [name, value] : settings) command += " --" + name + " " + value;
  const std::string schedule = current_schedule();
  return schedule.empty() ? command : command + " --schedule " + schedule;
}

}  // namespace ladder::testing
