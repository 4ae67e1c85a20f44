/// @file
/// `predict`: the cost model on the command line. See `predict --help`.
#pragma once

namespace ladder::model {

/// @returns the exit code; errors are printed
int run_predict(int argc, char** argv);

}  // namespace ladder::model
