/// @file
/// Running a learner's kernel in many ways.
#include "common/exercise/check.hpp"

#include <algorithm>
#include <iostream>

#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"
#include "common/testing/schedules.hpp"

namespace ladder::exercise {
namespace {

constexpr int kRandomSeeds = 4;
constexpr int kExitCannotRun = 4;

Execution execution(bool check_races) {
  Execution execution;
  execution.check_races = check_races && on_cpu_device();
  execution.warn = false;  // a wait that orders nothing may be part of a right answer
  return execution;
}

struct Verdict {
  bool right = true;
  bool is_sentence = false;  ///< else the text is a report of the device
  std::string text;
};

Verdict judge(const std::function<void()>& check) {
  try {
    check();
  } catch (const NotYet& not_yet) {
    return {false, true, not_yet.what()};
  } catch (const std::exception& failure) {  // the device says which rule is broken
    return {false, false, failure.what()};
  }
  return {};
}

/// What is wrong with the check's verdict on a file that must fail in a way that is known; nothing, where it
/// is as it must be.
std::string complaint_about(const Verdict& verdict, const std::vector<std::string>& arguments) {
  if (verdict.right) return "the check accepts it";
  const auto others = std::find(arguments.begin(), arguments.end(), "--not");
  const auto says = [&](const std::string& words) { return verdict.text.find(words) != std::string::npos; };
  if (const auto unsaid = std::find_if_not(arguments.begin() + 1, others, says); unsaid != others)
    return "the check does not say '" + *unsaid + "'";
  // A report goes on with all that happened, which may be what other mistakes lead to as well.
  const std::string headline = verdict.is_sentence ? verdict.text : split(verdict.text, '\n').front();
  const auto is_in_headline = [&](const std::string& words) {
    return headline.find(words) != std::string::npos;
  };
  if (const auto said = std::find_if(others, arguments.end(), is_in_headline); said != arguments.end())
    return "the check says '" + *said + "', which is what it must say of another wrong answer";
  if (arguments.front() == "--starter" && !verdict.is_sentence)
    return "the check does not say it in a sentence";
  return "";
}

/// The test of a file that must fail.
int expect_failure(const Verdict& verdict, const std::vector<std::string>& arguments) {
  const std::string complaint = complaint_about(verdict, arguments);
  std::cout << verdict.text << "\n";
  if (complaint.empty()) return kExitOk;
  std::cerr << "error: " << complaint << "\n";
  return kExitFailure;
}

}  // namespace

void expect(bool holds, const std::string& sentence) {
  if (!holds) throw NotYet(sentence);
}

namespace {

void on_every_schedule(const Execution& execution, const std::function<void()>& body) {
  bool another_was_right = false;
  for (const auto& [schedule, _] : testing::test_schedules(testing::Breadth::usual, kRandomSeeds)) {
    use_schedule(execution, schedule);
    try {
      body();
    } catch (const NotYet& not_yet) {
      throw NotYet(not_yet.what() + (another_was_right ? " (schedule " + schedule + ")" : ""));
    }
    another_was_right = true;
  }
}

}  // namespace

void on_every_schedule(const std::function<void()>& body) { on_every_schedule(execution(true), body); }

void on_every_block_order(const std::function<void()>& body) {
  Execution any_order = execution(true);
  any_order.check_grid = true;
  on_every_schedule(any_order, body);
}

void expect_no_race(const std::function<void()>& body) {
  use_schedule(execution(true), "");
  try {
    body();
  } catch (const NotYet&) {
  }
}

std::optional<LaunchCounters> counted(const std::function<void()>& body) {
  use_schedule(execution(false), "");
  body();
  return last_launch_counters();
}

std::optional<LaunchRecord> recorded(const std::function<void()>& body) {
  Execution recording = execution(false);
  recording.record = true;
  use_schedule(recording, "");
  body();
  return last_launch_record();
}

std::optional<StreamCounters> counted_in_streams(const std::function<void()>& body) {
  use_schedule(execution(false), "");
  const std::optional<StreamCounters> before = stream_counters();
  body();
  std::optional<StreamCounters> after = stream_counters();
  if (!after) return after;
  after->us -= before->us;
  after->graph_instantiations -= before->graph_instantiations;
  after->graph_launches -= before->graph_launches;
  return after;
}

int run_check(int argc, char** argv, const std::function<void()>& check, int architecture) {
  return run_program("check", [&] {
    try {
      require_device();
    } catch (const BadInput& none) {
      std::cout << none.what() << "\n";
      return kExitCannotRun;
    }
    const Requirement requirement{architecture, {architecture == kHopper ? "wgmma" : "fma"}};
    if (const std::string reason = why_not(requirement, this_target()); !reason.empty()) {
      std::cout << reason << "\n";
      return kExitCannotRun;
    }
    const Verdict verdict = judge(check);
    if (argc > 1) return expect_failure(verdict, {argv + 1, argv + argc});
    std::cout << (verdict.right ? "right" : "not yet: " + verdict.text) << std::endl;
    return verdict.right ? kExitOk : kExitFailure;
  });
}

}  // namespace ladder::exercise
