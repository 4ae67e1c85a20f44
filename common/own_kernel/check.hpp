/// @file
/// `ladder check`: runs a file of the reader's, with kernels of any kind, on the CPU device. See
/// `ladder check --help`.
#pragma once

namespace ladder {

/// All that `ladder check` does; argv[0] is the word "check".
/// @returns the exit code: 0 if the file is right on every schedule; 1 if not; 2 for bad input, after one
/// line on stderr
int run_check(int argc, char** argv);

}  // namespace ladder
