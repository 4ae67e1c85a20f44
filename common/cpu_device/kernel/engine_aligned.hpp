/// @file
/// Instructions that a warp executes as a whole (.aligned): all its lanes come to the same one, by the same
/// calls.
#pragma once
#include <cstdint>
#include <string>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

struct Thread;

/// How a thread came to an operation: return addresses, the innermost first. Empty where nobody knows how to
/// find them.
struct CallChain {
  static constexpr unsigned kMax = 12;
  uintptr_t addresses[kMax] = {};
  unsigned count = 0;
  bool operator==(const CallChain&) const = default;
};

/// One .aligned instruction that some lanes of a warp have executed.
struct AlignedStep {
  const char* what = "";
  Location where;
  CallChain calls;
  unsigned first_lane = 0, lanes = 0;
};

/// Of the thread that runs.
CallChain calls_to_here(const Thread&);
/// Where the function returns to, in the calls of the thread that runs, that `call` returns to; null if that
/// is not known.
const void* outer_call(const Thread&, const void* call);
/// Compilers copy code, so the same call may have several addresses.
/// @return what tells the two apart in the source: "A, called from B; <other> by C, called from D". Empty if
/// nothing does, or if there are no line numbers.
std::string difference(const CallChain& mine, const CallChain& others, const std::string& other);

/// The lane executes its next .aligned instruction. Throws if another lane of its warp came to another one,
/// or to the same one by other calls.
void execute_aligned(Thread&, const char* what, Location where);
/// Throws if the exiting lane has missed an .aligned instruction of its warp.
void check_aligned_at_exit(Thread&);

}  // namespace cpu_device
