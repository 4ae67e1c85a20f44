/// @file
/// The program `ladder`: what its first word chooses.
#pragma once
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/ladder/host_half.hpp"

namespace ladder {

/// No word: runs the rungs of every lesson and prints the climb.
/// @param host_half what stands around the kernels; may be nullptr
/// @returns the exit code: 0; 1 for a wrong result or a failing device; 2 for bad input, after one line on
/// stderr
int run_ladder(const std::vector<const Lesson*>& lessons, const HostHalf* host_half, int argc, char** argv);

/// `ladder tune`: measures candidates of the first lesson that has some, on each shape, and writes the
/// fastest to the file of tuned plans, which the lesson's programs then read; or forgets them.
/// @param argv from the word "tune" on
/// @returns the exit code, as run_ladder does; kExitFailure also if the plans could not be written
int run_tune(const std::vector<const Lesson*>& lessons, int argc, char** argv);

/// `ladder ablate NN`: what each ingredient of a lesson is worth. Runs the lesson's program, and beside it
/// programs or settings that lack one ingredient each.
/// @param argv from the word "ablate" on
/// @returns the exit code, as run_ladder does
int run_ablate(int argc, char** argv);

}  // namespace ladder
