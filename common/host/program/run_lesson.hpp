/// @file
/// The program of a lesson: verifies it and times it against cuBLAS, for every setting and shape asked for.
#pragma once
#include "common/host/problem/lesson.hpp"

namespace ladder {

/// All that the main() of a lesson does.
/// @returns the exit code: 0; 1 for a wrong result or a failing device; 2 for bad input, after one line on
/// stderr
int run_lesson(const Lesson& lesson, int argc, char** argv);

}  // namespace ladder
