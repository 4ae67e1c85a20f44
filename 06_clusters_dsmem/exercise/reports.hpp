/// @file
/// What the checks of lesson 06 make of a report of the device. Included by them alone.
#pragma once
#include <fmt/core.h>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>

#include "common/exercise/check.hpp"

namespace lesson06 {

/// Calls `body`. @throws NotYet with `sentence` instead of the device's report if threads wait for ever
inline void unless_deadlocked(const std::string& sentence, const std::function<void()>& body) {
  try {
    body();
  } catch (const ladder::exercise::NotYet&) {
    throw;
  } catch (const std::exception& report) {
    const std::string what = report.what();
    if (what.find("deadlock") == std::string::npos && what.find("waited") == std::string::npos) throw;
    throw ladder::exercise::NotYet(sentence);
  }
}

/// For exercises in which a mistake is to be found: calls `body`, and prints the device's report, the
/// learner's evidence. @throws NotYet with its first line
inline void with_evidence(const std::function<void()>& body) {
  try {
    body();
  } catch (const ladder::exercise::NotYet&) {
    throw;
  } catch (const std::exception& report) {
    const std::string what = report.what();
    std::cout << "The CPU device reports:\n" << what << "\n\n";
    throw ladder::exercise::NotYet(what.substr(0, what.find('\n')));
  }
}

}  // namespace lesson06
