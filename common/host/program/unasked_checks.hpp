/// @file
/// What the program of a lesson checks on the CPU device without being asked.
#pragma once
#include <string>
#include <vector>

#include "common/host/measure/comparison.hpp"
#include "common/host/problem/lesson.hpp"

namespace ladder {

struct UnaskedChecks {
  bool passed = true;
  /// What was checked, or what was not.
  std::string line;
};

/// Unless only what is asked for shall run, runs each contender once more by thorough_execution(), and by the
/// first of the schedules that the reader has chosen, on three small problems: Lesson::cpu_check has ragged
/// sizes and several K steps; Lesson::cpu_check_few has so few rows and K steps that parts of a block have
/// nothing to do, and all its tiles are one block's; and the third is ragged, too, but its rows are whole
/// sectors, and K is larger than M and N. All three also run in a random order, which shows a thread
/// that comes too late to a wait. Where its launches may begin before the one before has ended, a contender
/// is also launched twice in a row, and the second launch reads what the first writes. A kernel that one of
/// the asked shapes takes, and none of the small problems, runs these, too.
/// @param asked what the table is about
/// @returns whether all results were right; if not, the complaint is on stderr, with a command that repeats
/// the run
/// @throws std::runtime_error what the CPU device says of a broken rule, with such a command
UnaskedChecks check_unasked(const Lesson& lesson, const std::vector<Contender>& contenders,
                            const ComparisonOptions& options, const std::vector<Shape>& asked);

/// What the run does not show because its problem is small: a line, or nothing.
std::string not_shown_by(const Run& run);

}  // namespace ladder
