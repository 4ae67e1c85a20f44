/// @file
/// `ladder tune`: measures every plan of a lesson that chooses among plans, and remembers the fastest.
#pragma once
#include <cstddef>
#include <vector>

#include "common/host/problem/lesson.hpp"

namespace ladder {

/// Which plans are worth long samples, by their times in short ones: the first, which is the model's choice,
/// the five fastest, and all within 12 % of the fastest. In order.
std::vector<size_t> finalists(const std::vector<double>& times_us);

/// Measures the candidates of the first lesson that has some, on each shape, and writes the fastest to the
/// file of tuned plans, which the lesson's programs then read; or forgets them.
/// @param argv from the word "tune" on
/// @returns the exit code, as run_ladder does; kExitFailure also if the plans could not be written
int run_tune(const std::vector<const Lesson*>& lessons, int argc, char** argv);

}  // namespace ladder
