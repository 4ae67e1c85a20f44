/// @file
/// Where a barrier was initialised: from that, the host reads its name in the source.
#pragma once

namespace ptx {

/// The line of a call, as the defaulted argument of a function that wants to know. (std::source_location
/// would do the same, but clang 14 lacks it.)
struct CallSite {
  const char* file;
  unsigned line;

  /// The line of the call whose defaulted argument this is.
  __host__ __device__ static constexpr CallSite current(const char* file = __builtin_FILE(),
                                                        unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace ptx
