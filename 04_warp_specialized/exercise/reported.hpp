/// @file
/// For checks of exercises whose starter breaks a rule: the report is what the learner reads.
#pragma once
#include <functional>
#include <iostream>
#include <string>

#include "common/exercise/check.hpp"

namespace ladder::exercise {

/// Calls `body`. If the device reports a broken rule, prints the whole report.
/// @throws NotYet if it does, with `when` and the report's first line; and what `body` throws as NotYet,
/// after `when`
inline void with_report(const std::string& when, const std::function<void()>& body) {
  try {
    body();
  } catch (const NotYet& not_yet) {
    throw NotYet(when + ": " + not_yet.what());
  } catch (const std::exception& report) {
    const std::string what = report.what();
    std::cout << what << "\n\n";
    throw NotYet(when + ": " + what.substr(0, what.find('\n')));
  }
}

}  // namespace ladder::exercise
