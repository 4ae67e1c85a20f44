/// @file
/// `ladder parts`: what each part of the lessons' kernels takes on this GPU, in clocks.
#pragma once

namespace ladder {

/// Measures the parts, prints them and, with --json, writes them.
/// @param argv from the word "parts" on
/// @returns the exit code, as run_ladder does
int run_parts(int argc, char** argv);

}  // namespace ladder
