/// @file
/// How programs end, and the error that says that the reader can mend it.
#pragma once
#include <stdexcept>

namespace ladder {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;   ///< a wrong result, or a device that failed
constexpr int kExitBadInput = 2;  ///< an argument, a file or the machine is not what it must be

/// Bad input that is not one argument's value, for example a missing GPU.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ladder
