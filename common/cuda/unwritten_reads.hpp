/// @file
/// What kernels have read before it was written. A shadow of this header knows it on the CPU device.
#pragma once
#include <string>

namespace ladder {

/// A sentence about the first such read since the last call, as far as the device sees them: a GPU sees none.
inline std::string take_unwritten_read() { return ""; }

/// Sentences, a line each, on what of streams may explain a wrong result; a GPU tells nothing.
inline std::string describe_host_side() { return ""; }

/// A rule that queued work has broken, found while an exception left the program's code; a GPU tells nothing.
inline std::string take_broken_rule() { return ""; }

}  // namespace ladder
