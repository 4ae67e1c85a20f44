/// @file
/// `ladder ablate NN`: what each ingredient of a lesson is worth, by switching it off.
#pragma once

namespace ladder {

/// Runs the lesson's program, and beside it programs or settings that lack one ingredient each.
/// @param argv from the word "ablate" on
/// @returns the exit code, as run_ladder does
int run_ablate(int argc, char** argv);

}  // namespace ladder
