/// @file
/// Ctrl-C: the driver stops enqueueing, waits for what is in flight, frees it and ends with one line.
#pragma once
#include <stdexcept>

namespace ladder {

constexpr int kExitInterrupted = 130;  ///< 128 + SIGINT, what shells expect

/// The run was ended by Ctrl-C; nothing is in flight any more.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// From now on Ctrl-C only sets a flag, which is not set yet. A second Ctrl-C ends the program at once.
void catch_interrupts();

/// Was Ctrl-C pressed since then?
bool interrupted();

}  // namespace ladder
