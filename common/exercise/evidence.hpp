/// @file
/// What a check makes of a report of the device, where run_check() shall not print it as it is.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>

#include "common/exercise/check.hpp"

namespace ladder::exercise {

/// Calls `body`, one case of several. What it throws, a sentence or a report, then begins with `name`.
inline void in_case(const std::string& name, const std::function<void()>& body) {
  try {
    body();
  } catch (const NotYet& not_yet) {
    throw NotYet(name + ": " + not_yet.what());
  } catch (const std::exception& report) {
    throw std::runtime_error(name + ": " + report.what());
  }
}

/// Compares. What it throws ends with a line of `explain`, which says what makes the values that `output`
/// holds; without it where that is empty.
template <class Values, class T>
void expect_equal_or_explain(const Values& output, const std::vector<T>& expected,
                             const std::function<std::string(const std::vector<T>& got)>& explain) {
  try {
    output.expect_equal(expected);
  } catch (const NotYet& not_yet) {
    const std::string why = explain(output.values());
    if (why.empty()) throw;
    throw NotYet(std::string(not_yet.what()) + "\n  " + why);
  }
}

/// Calls `body`. Where its result is NaN, which says nothing of the cause, a race is named first, if there is
/// one.
/// @throws NotYet with `sentence` instead of the device's report if threads wait forever.
/// Below it stand the two lines of the CPU device's report that say where, and who does not come. Where the
/// second of these asks about the cause, they stand in place of the question that ends the sentence.
inline void unless_deadlocked(const std::string& sentence, const std::function<void()>& body) {
  try {
    body();
  } catch (const NotYet& not_yet) {
    if (std::string(not_yet.what()).find(kNeverWritten) != std::string::npos) expect_no_race(body);
    throw;
  } catch (const std::exception& report) {
    const std::string what = report.what();  // "still pending": a GPU's wait has given up
    if (what.find("deadlock") == std::string::npos && what.find("still pending") == std::string::npos) throw;
    const size_t where = what.find("deadlock: ");
    if (where == std::string::npos) throw NotYet(sentence);
    const size_t line = what.find('\n', where), end = what.find('\n', line + 1);
    const size_t question = sentence.rfind(": "), first = where + std::string("deadlock: ").size();
    if (end != std::string::npos && what[end - 1] == '?' && question != std::string::npos)
      throw NotYet(sentence.substr(0, question + 2) + what.substr(first, end - first));
    throw NotYet(sentence + "\n  " + what.substr(where, end - where));
  }
}

}  // namespace ladder::exercise
