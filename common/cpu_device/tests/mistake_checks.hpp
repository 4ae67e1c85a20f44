/// @file
/// What the tests of planted mistakes share: on some schedule, or on all, a kernel with a mistake is named.
#pragma once
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <initializer_list>
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

/// One of these words is in each text, and each of them in some text: a list cannot hold what is never said.
inline void check_words(const std::vector<std::string>& texts, std::initializer_list<const char*> words) {
  const auto contains = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  for (const std::string& text : texts) {
    INFO("said: " << text);
    CHECK(std::any_of(words.begin(), words.end(), [&](const char* word) { return contains(text, word); }));
  }
  for (const char* word : words) {
    INFO("never said: " << word);
    CHECK(std::any_of(texts.begin(), texts.end(),
                      [&](const std::string& text) { return contains(text, word); }));
  }
}

/// What is said depends on the schedule where there are several `words`.
inline void check_named_always(const RunOfMistake& run, std::initializer_list<const char*> words) {
  check_words(blames(run, false), words);
}
inline void check_named_always(const RunOfMistake& run, const char* words) {
  check_named_always(run, {words});
}

/// The result is wrong, or something is reported, on some fixed schedule; and the race checker names it on
/// all.
inline void check_race(const RunOfMistake& run, std::initializer_list<const char*> words) {
  const std::vector<std::string> texts = blames(run, false);
  CHECK(std::any_of(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); }));
  if (!instrumented()) return;
  check_words(blames(run, true), words);
}
inline void check_race(const RunOfMistake& run, const char* words) { check_race(run, {words}); }

}  // namespace cpu_device::test
