/// @file
/// What all programs do with errors: one line on stderr, and an exit code that says whose fault it was.
#pragma once
#include <functional>
#include <string>

#include "common/host/base/exit_codes.hpp"

namespace ladder {

/// Runs `body` and returns its result. An exception becomes "NAME: error: ..." on stderr and an exit code:
/// bad input (std::invalid_argument, BadInput, BadArguments, and too little memory) kExitBadInput, all
/// else kExitFailure.
int run_program(const std::string& name, const std::function<int()>& body);

}  // namespace ladder
