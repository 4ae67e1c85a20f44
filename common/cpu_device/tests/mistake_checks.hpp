/// @file
/// What the tests of planted mistakes share: on some schedule, or on all, a kernel with a mistake is named.
#pragma once
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/cpu_device/tests/kernel_test.hpp"

namespace cpu_device::test {

/// A kernel with its mistake: what it is blamed for on a schedule, empty if for nothing.
using RunOfMistake = std::function<std::string(const Schedule&)>;

/// What it is blamed for on each fixed schedule.
inline std::vector<std::string> blames(const RunOfMistake& run, bool check_races) {
  CheckRaces::wanted = check_races;
  std::vector<std::string> texts;
  for (const Schedule& schedule : fixed_schedules()) texts.push_back(run(schedule));
  CheckRaces::wanted = false;
  return texts;
}

inline void check_named_always(const RunOfMistake& run, const std::string& words) {
  for (const std::string& text : blames(run, false))
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(words));
}

/// The result is wrong, or something is reported, on some fixed schedule; and the race checker names it on
/// all.
inline void check_race(const RunOfMistake& run, const std::string& words) {
  const std::vector<std::string> texts = blames(run, false);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); }));
  if (!instrumented()) return;
  for (const std::string& text : blames(run, true))
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(words));
}

}  // namespace cpu_device::test
