/// @file
/// `ladder tune`: measures plans of a lesson that chooses among plans, and remembers the fastest.
#pragma once
#include <vector>

#include "common/host/problem/lesson.hpp"

namespace ladder {

/// Measures candidates of the first lesson that has some, on each shape, and writes the fastest to the file
/// of tuned plans, which the lesson's programs then read; or forgets them.
/// @param argv from the word "tune" on
/// @returns the exit code, as run_ladder does; kExitFailure also if the plans could not be written
int run_tune(const std::vector<const Lesson*>& lessons, int argc, char** argv);

}  // namespace ladder
