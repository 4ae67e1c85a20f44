/// @file
/// What all programs do with errors: one line on stderr, and an exit code that says whose fault it was.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>

namespace ladder {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;   ///< a wrong result, or a device that failed
constexpr int kExitBadInput = 2;  ///< an argument, a file or the machine is not what it must be

/// Bad input that is not one argument's value, for example a missing GPU.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `body` and returns its result. An exception becomes "NAME: error: ..." on stderr and an exit code:
/// bad input (std::invalid_argument, BadInput, errors of CLI11, and too little memory) kExitBadInput, all
/// else kExitFailure.
int run_program(const std::string& name, const std::function<int()>& body);

}  // namespace ladder
